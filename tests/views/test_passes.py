"""Bars of passes, held against kernels whose traffic is known beforehand."""

import numpy as np
import pytest

import labkit
from labkit import cuda, norm
from labkit.views import passes
from labkit.views.passes import colour_of

LAYER = norm.BatchForward(N=4, C=3, H=5, W=6)
SOME = "centred", "two_passes", "shifted", "fused", "one_read"


@cuda.jit
def doubled(x, out, scale):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * scale[0]


@cuda.jit
def half_read(x, out):
    i = cuda.grid(1)
    if 2 * i < x.size:
        out[i] = x[2 * i]


def run_of(kernel, *arguments):
    return labkit.simulate(kernel, 2, 32, *arguments)


@pytest.fixture(scope="module")
def of_ladder():
    ladder = norm.ladder("batch")
    return passes({slug: ladder.step(slug).simulate(*LAYER.operands()).traces for slug in SOME})


def test_the_steps_have_as_many_passes_as_they_state(of_ladder):
    totals = {run["name"]: run["total"] for run in of_ladder.data["runs"]}
    assert totals == {"centred": 10, "two_passes": 6, "shifted": 5, "fused": 3, "one_read": 2}
    stated = {
        step.slug: int(step.module.__doc__.split(" passes in all")[0].split()[-1]) for step in norm.ladder("batch")
    }
    assert totals == {slug: stated[slug] for slug in SOME}


def test_each_launch_says_what_it_reads_and_writes(of_ladder):
    first, *_ = of_ladder.data["runs"]
    names = [(one["kernel"], [(part["kind"], part["array"]) for part in one["passes"]]) for one in first["launches"]]
    assert names[:3] == [
        ("means", [("load", "x")]),
        ("centred", [("load", "x"), ("store", "y")]),
        ("variances", [("load", "y")]),
    ]
    assert of_ladder.data["say"][1] == (
        "`centred`, launch 2 of 6: `centred` reads `x` and writes `y`. That makes **3 passes** so far."
    )
    two_reads, end = of_ladder.data["say"][6], of_ladder.data["say"][8]
    assert "reads `x` twice" in two_reads
    assert end.endswith("In all **6 passes**, 4 fewer than `centred`.")


def test_bytes_are_those_of_the_trace(of_ladder):
    values = of_ladder.data["stats"]["values"]
    assert values[5] == ["10", f"{10 * 4 * LAYER.C * LAYER.values:,}", "-"], (
        "nothing is fewer than the first run itself"
    )
    assert values[-1] == ["2", f"{2 * 4 * LAYER.C * LAYER.values:,}", "5 times"]


def test_parts_of_a_pass_count_and_small_arrays_do_not():
    x = np.ones(64, np.float32)
    view = passes({"all": [run_of(doubled, x, x * 0, np.ones(1, np.float32))], "half": [run_of(half_read, x, x * 0)]})
    every, half = (run["launches"][0]["passes"] for run in view.data["runs"])
    assert [(part["array"], part["kind"], part["passes"]) for part in every] == [("x", "load", 1), ("out", "store", 1)]
    assert [part["passes"] for part in half] == [0.5, 0.5]
    assert view.data["say"][1].endswith(
        "reads `x` 0.5 times and writes `out` 0.5 times. In all **1 pass**, 1 fewer than `all`."
    )


def test_reads_of_the_first_array_of_others_and_writes_have_a_colour_each(of_ladder):
    found = {
        (part["kind"], part["array"]): colour_of(part, of_ladder.data["arrays"])
        for run in of_ladder.data["runs"]
        for launch in run["launches"]
        for part in launch["passes"]
    }
    assert found == {("load", "x"): "A", ("load", "y"): "B", ("store", "y"): "C"}


def test_a_single_run_is_compared_with_nothing():
    x = np.ones(64, np.float32)
    view = passes({"half": [run_of(half_read, x, x * 0)]})
    assert view.data["stats"] == {"labels": ["passes so far", "bytes so far"], "values": [["1", "256"]]}


def test_a_still_picture_and_what_is_refused(of_ladder, tmp_path):
    of_ladder.save_png(tmp_path / "passes.svg", step=8)
    assert (tmp_path / "passes.svg").stat().st_size > 5000
    with pytest.raises(TypeError, match="runs by their names"):
        passes([])
    with pytest.raises(TypeError, match="takes a trace"):
        passes({"one": [1]})
