"""Ceilings: the speed that each unit allows a launch."""

import pytest

from labkit.trace import Counters
from labkit.views import ceilings
from tests.views.made import trace


def launch(flops=4 * 10**9, wavefronts=261_360_000):
    """A launch of a millisecond of DRAM, and as much of shared memory on 132 SMs at 1.98 GHz."""
    counted = Counters(
        flops=flops,
        flops_by_dtype={"float32": flops},
        dram_read_bytes=3_350_000_000,
        shared_load_wavefronts=wavefronts,
    )
    return trace([], {}, counters=counted, grid=(1000, 1, 1))


def allowed(view):
    return {unit: speed for unit, speed, *_ in view.data["table"]["rows"]}


def test_a_unit_allows_the_flops_over_its_time():
    speeds = allowed(ceilings(launch()))
    assert speeds["shared memory"] == speeds["DRAM bandwidth"] == "4"
    assert speeds["float32 arithmetic"] == "66.9" and speeds["L2 bandwidth"] == "not used"


def test_the_sentence_names_the_lowest_ceiling_and_the_next():
    view = ceilings(launch(wavefronts=2 * 261_360_000))
    assert view.sentence == (
        "shared memory allows 2 TFLOP/s, the least of all units. The next is DRAM bandwidth, with 4."
    )
    assert "var(--D)" in view.data["charts"]["wide"]


def test_another_gpu_has_other_ceilings():
    view = ceilings(launch(), "H200")
    assert "H200" in view.data["title"] and float(allowed(view)["DRAM bandwidth"]) == pytest.approx(
        4 * 4.8 / 3.35, 0.01
    )


def test_only_launches_with_flops_have_ceilings(tmp_path):
    with pytest.raises(ValueError, match="makes no FLOPs"):
        ceilings(launch(flops=0))
    with pytest.raises(TypeError, match="ceilings takes a trace"):
        ceilings({"tiled": launch()})
    ceilings(launch()).save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 8000
