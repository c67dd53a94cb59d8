"""The landscape: kernels of any precision under the roofs of any GPU."""

import pytest

from labkit.machine.gpus import GPUS, UnknownDevice
from labkit.trace import Counters
from labkit.views import Standing, landscape
from tests.views.made import trace


def launch(dram=10**9, flops=10**9, wavefronts=0):
    counted = Counters(
        flops=flops,
        flops_by_dtype={"float32": flops},
        dram_read_bytes=dram,
        shared_load_wavefronts=wavefronts,
    )
    return trace([], {}, counters=counted)


def shown(**fields):
    return landscape({"it": Standing(**{"precision": "float32", "intensity": 0.5} | fields)}).data["kernels"][0]


def test_a_kernel_is_as_fast_at_best_as_dram_at_its_intensity():
    best = shown(traces=(launch(),), flops=10**9)["best"]
    assert best["H100 SXM"] == pytest.approx(0.5 * 3.35) and best["T4"] == pytest.approx(0.5 * 0.32)
    assert best.keys() == GPUS.keys()


def test_another_unit_may_hold_it_up_and_its_blocks_fill_the_gpu():
    """One block was run, of 261,360,000 wavefronts: a millisecond for 132 SMs at 1.98 GHz."""
    slow = shown(intensity=1000, traces=(launch(wavefronts=261_360_000),), flops=4 * 10**9)
    assert slow["best"]["H100 SXM"] == pytest.approx(4)


def test_useful_flops_count_and_not_those_that_the_kernel_makes():
    held = {"traces": (launch(flops=10**12),), "intensity": 1000}
    assert shown(**held, flops=10**12)["best"]["H100 SXM"] == pytest.approx(66.9)
    assert shown(**held, flops=10**11)["best"]["H100 SXM"] == pytest.approx(6.69)


def test_dram_counts_at_the_large_problem_and_not_at_the_small_one_that_ran():
    best = shown(traces=(launch(dram=10**12),), flops=10**9, intensity=1000)["best"]
    assert best["H100 SXM"] == pytest.approx(66.9)


def test_a_kernel_known_by_measurement_alone_could_be_as_fast_as_the_roof_anywhere():
    only = shown(measured_tflops={"H100 SXM": 1.5})
    assert only["measured"] == {"H100 SXM": 1.5}
    assert only["best"].keys() == GPUS.keys()
    assert only["best"]["H200"] == pytest.approx(0.5 * 4.8)


def test_where_a_kernel_cannot_run_it_has_no_place():
    assert shown(traces=(launch(),), flops=10**9, gpus=("H200",))["best"].keys() == {"H200"}
    assert "T4" not in shown(precision="bfloat16 tensor")["best"]


def test_the_table_has_the_ridge_of_every_gpu_and_precision():
    rows = landscape({}).data["table"]["rows"]
    assert len(rows) == sum(len(gpu.peak_tflops) for gpu in GPUS.values())
    assert ["H100 SXM", "3,350", "float16 tensor", "989.4", "295"] in rows


@pytest.mark.parametrize(
    ("choice", "error", "words"),
    [
        ({"gpu": "H1000"}, UnknownDevice, "no GPU called 'H1000'; choose one of V100"),
        ({"gpu": "T4", "precision": "float8 tensor"}, ValueError, "T4 has no published 'float8 tensor' peak"),
    ],
)
def test_what_cannot_be_shown_first_is_refused(choice, error, words):
    with pytest.raises(error, match=words):
        landscape({}, **choice)


def test_a_still_picture_is_drawn_with_marks_of_either_kind(tmp_path):
    kernels = {
        "both": Standing("float32", 0.5, {"H100 SXM": 1.5}, (launch(),), 10**9),
        "measured": Standing("float32", 5.0, {"H100 SXM": 9.0}),
        "run": Standing("float32", 50.0, {}, (launch(),), 10**9),
        "elsewhere": Standing("float32", 50.0, {"H200": 9.0}, gpus=("H200",)),
    }
    landscape(kernels).save_png(tmp_path / "view.svg")
    drawn = (tmp_path / "view.svg").read_text()
    assert all(f"<!-- {name} -->" in drawn for name in ("both", "measured", "run"))
    assert "elsewhere" not in drawn
