"""The ladder of batch norm in NCHW: what its later steps take, share and keep."""

import numpy as np
import pytest

from labkit import norm
from labkit.formats import BF16, FP32
from labkit.parts.vector_widths import width_up_to_four
from norm.gpus import give_sms

STEPS = norm.ladder("batch")


def test_a_first_value_far_from_all_others_does_no_harm():
    """Were it taken away from all values of a thread, its square would drown the variance."""
    problem = norm.BatchForward(4, 1, 64, 96)
    before = problem.operands()
    before[0][0, 0, 0, 0] = 1e4
    for slug in ("two_passes", "split", "last_first", "one_read", "overlapped"):
        assert problem.is_right(before, STEPS.step(slug).simulate(*before).operands), slug


def test_no_two_blocks_share_what_one_can_keep():
    one_read = STEPS.step("one_read")
    taken = {
        (64, 256, 56, 56): (8, 512, 100_352),
        (32, 64, 112, 112): (8, 1024, 200_704),
        (32, 512, 7, 7): (1, 384, 6_272),
        (8, 512, 28, 28): (1, 384, 25_088),
        (2, 8, 2, 2): (8, 32, 16),
    }
    for sizes, (blocks, threads, smem_bytes) in taken.items():
        width = 4 if sizes[2] * sizes[3] % 4 == 0 else 1
        assert one_read.geometry(norm.BatchForward(*sizes), 4, width) == (blocks, threads, smem_bytes), sizes


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize(("sms", "blocks"), [(2, 1), (8, 4), (16, 8)])
def test_a_cluster_takes_several_channels(sms, blocks, format, monkeypatch):
    overlapped = STEPS.step("overlapped")
    give_sms(monkeypatch, sms)
    monkeypatch.setattr(overlapped.module, "MAX_BLOCKS_PER_SM", 1)
    monkeypatch.setattr(overlapped.module, "MAX_ROWS", 2)
    problem = norm.BatchForward(7, 7, 16, 8, relu=sms > 2)
    cut = overlapped.geometry(problem, format.itemsize)
    assert (cut.blocks, cut.clusters) == (blocks, 2) and cut.blocks * cut.pieces > 1
    before = problem.operands(format)
    found = overlapped.simulate(*before, format=format)
    assert found.errors == () and problem.is_right(before, found.operands, format)


def test_pieces_of_a_channel_fill_two_blocks_of_an_sm():
    overlapped = STEPS.step("overlapped")
    taken = {
        ((64, 256, 56, 56), 4): (1, 98, 8, 8, 32),
        ((64, 256, 56, 56), 2): (2, 49, 8, 4, 66),
        ((32, 64, 112, 112), 4): (1, 98, 16, 8, 16),
    }
    for (sizes, itemsize), expected in taken.items():
        assert overlapped.geometry(norm.BatchForward(*sizes), itemsize) == expected, sizes


@pytest.mark.parametrize(("dtype", "pixels", "at_once"), [
    (np.float32, 8, 4), (np.float32, 6, 1), (np.uint16, 8, 4), (np.uint16, 4, 4), (np.uint16, 49, 1),
])  # fmt: skip
def test_neighbours_are_taken_by_four_where_every_plane_begins_so(dtype, pixels, at_once):
    planes = np.zeros((3, pixels), dtype)
    assert width_up_to_four(planes, planes) == at_once
    assert width_up_to_four(planes, np.zeros((3, 7), dtype)) == 1


def test_a_channel_that_no_cluster_can_keep_is_refused():
    problem = norm.BatchForward(1, 1, 8 * 226, 257)
    with pytest.raises(ValueError, match="has 464656 values, and a cluster keeps 462848: choose another step"):
        STEPS.step("one_read").launches(*problem.operands())
