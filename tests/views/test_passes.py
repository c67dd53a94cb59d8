"""Bars of passes, held against kernels whose traffic is known beforehand."""

import numpy as np
import pytest

import labkit
from labkit import cuda, norm
from labkit.views import passes
from labkit.views.passes import pass_colour

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


@cuda.jit
def by_sixteenths(x, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        a, b, c, d = x[t], x[t + 32], x[t + 64], x[t + 96]
        e, f, g, h = x[t + 128], x[t + 160], x[t + 192], x[t + 224]
        a, b, c, d = a + x[t + 256], b + x[t + 288], c + x[t + 320], d + x[t + 352]
        e, f, g, h = e + x[t + 384], f + x[t + 416], g + x[t + 448], h + x[t + 480]
        a, b, c, d = a + x[t + 512], b + x[t + 544], c + x[t + 576], d + x[t + 608]
        e, f, g, h = e + x[t + 640], f + x[t + 672], g + x[t + 704], h + x[t + 736]
        out[t] = a + b + c + d + e + f + g + h


@cuda.jit
def in_thirds(x, out):
    i = cuda.grid(1)
    if i % 3 == 0:
        out[i] = x[i]
    elif i % 3 == 1:
        out[i] = -x[i]
    else:
        out[i] = x[i]


@cuda.jit
def added(x, out):
    i = cuda.grid(1)
    cuda.atomic.add(out, i, x[i])


@cuda.jit
def first_alone(x, out):
    if cuda.grid(1) == 0:
        out[0] = x[0]


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
    assert values[-1] == ["2", f"{2 * 4 * LAYER.C * LAYER.values:,}", "5x"]


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
        (part["kind"], part["array"]): pass_colour(part, of_ladder.data["arrays"])
        for run in of_ladder.data["runs"]
        for launch in run["launches"]
        for part in launch["passes"]
    }
    assert found == {("load", "x"): "A", ("load", "y"): "B", ("store", "y"): "C"}


def test_many_small_accesses_add_up_to_a_pass():
    x = np.ones(768, np.float32)
    (run,) = passes({"one": [run_of(by_sixteenths, x, x * 0)]}).data["runs"]
    assert run["launches"][0]["passes"] == [{"array": "x", "kind": "load", "passes": 1}]


def test_parts_of_a_pass_are_added_up_before_they_are_rounded():
    x = np.ones(192, np.float32)
    view = passes({"thirds": [labkit.simulate(in_thirds, 6, 32, x, x * 0)]})
    assert view.data["say"] == ["`thirds`, launch 1 of 1: `in_thirds` reads `x` and writes `out`. In all **2 passes**."]
    assert view.data["stats"]["values"] == [["2", "1,536"]]


def test_an_atomic_reads_and_writes():
    x = np.ones(64, np.float32)
    (run,) = passes({"added": [run_of(added, x, x * 0)]}).data["runs"]
    found = [(part["kind"], part["array"], part["passes"]) for part in run["launches"][0]["passes"]]
    assert found == [("load", "x", 1), ("load", "out", 1), ("store", "out", 1)]


def test_a_run_without_a_pass_is_not_divided_by():
    x = np.ones(64, np.float32)
    all_, nothing = [run_of(doubled, x, x * 0, np.ones(1, np.float32))], [run_of(first_alone, x, x * 0)]
    assert passes({"all": all_, "nothing": nothing}).data["stats"]["values"][1] == ["0", "0", "-"]
    assert passes({"nothing": nothing, "all": all_}).data["stats"]["values"][1] == ["2", "512", "-"]


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
    with pytest.raises(TypeError, match="runs by their names"):
        passes({"one": []})


def test_an_array_that_kernels_know_by_different_names_is_one_array_in_the_picture():
    x = np.ones(64, np.float32)
    first = run_of(doubled, x, x * 0, np.ones(1, np.float32))
    second = run_of(half_read, x, x * 0)
    view = passes({"both": [first, second]}, {"out": "y", "x": "y"})
    assert view.data["arrays"] == ["y"] and "reads `y` and writes `y`" in view.data["say"][0]
    assert passes({"both": [first, second]}).data["arrays"] == ["x", "out"]
