"""`channels_last/first_kept` where a chip keeps a part of the images only: what is read again is right."""

import pytest

from labkit import norm
from labkit.formats import BF16, FP32
from norm.costs import passes
from norm.gpus import give_sms

STEP = norm.ladder("channels_last").step("first_kept")
PROBLEMS = [
    norm.BatchForward(6, 24, 20, 10, layout="NHWC", hard=True),
    norm.BatchForward(2, 40, 12, 16, relu=False, layout="NHWC"),
    norm.BatchForward(1, 544, 4, 5, layout="NHWC"),
    norm.BatchForward(3, 8, 7, 16, layout="NHWC"),
]


@pytest.fixture(params=[1, 4])
def small(request, monkeypatch):
    """A GPU of three SMs with little memory, and groups of warps."""
    give_sms(monkeypatch, 3)
    for name, value in {"MAX_VECTORS": 48, "MAX_RING_SLOTS": 4, "CHIP_BYTES": 2**20}.items():
        monkeypatch.setattr(STEP.module, name, value)
    monkeypatch.setattr(STEP.module, "GROUPINGS", (1, request.param) if request.param > 1 else (1,))

    def keep(problem, format, tiles):
        """Leaves room for so many tiles in an SM."""
        cut = STEP.module.geometry(problem, format.itemsize)
        a_tile = cut.smem_bytes // (cut.permanent + cut.ring_slots)
        of_sums = (2 * STEP.module.THREADS + cut.pixel_vectors) * 16 // format.itemsize * 4
        monkeypatch.setattr(STEP.module, "CHIP_BYTES", of_sums + tiles * a_tile)
        return STEP.module.geometry(problem, format.itemsize)

    return keep


@pytest.mark.parametrize("tiles", [3, 6])
@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.sample(6)
def test_what_is_not_kept_is_read_again(small, problem, format, tiles):
    cut = small(problem, format, tiles)
    before = problem.operands(format, seed=5)
    result = STEP.simulate(*before, format=format)
    assert not any(trace.errors for trace in result.traces)
    assert problem.is_right(before, result.operands, format)
    tile_bytes = cut.lines * 128 * cut.blocks
    all_tiles = -(-problem.C * problem.values * format.itemsize // tile_bytes)
    is_read_again = passes(result.traces[0], problem) * 4 / format.itemsize > 2
    assert is_read_again == (all_tiles > tiles)


def test_pixels_that_fill_no_lines_are_refused():
    problem = norm.BatchForward(1, 12, 3, 5, layout="NHWC")
    with pytest.raises(ValueError, match="no tiles of whole lines of 128 bytes"):
        STEP.launch(*problem.operands())
