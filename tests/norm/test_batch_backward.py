"""The ladders of batch norm's gradients: what their last steps take, share and keep."""

import pytest

from labkit import norm
from labkit.formats import BF16, FP32
from norm.gpus import give_sms

NCHW, NHWC = norm.ladder("batch_backward"), norm.ladder("channels_last_backward")


def test_a_channel_that_no_cluster_can_keep_is_refused():
    problem = norm.BatchBackward(1, 1, 8 * 111, 257)
    with pytest.raises(
        ValueError, match="has 228216 values, and a cluster keeps 227328 of both arrays: choose another"
    ):
        NCHW.step("one_read").launches(*problem.operands())


@pytest.mark.parametrize(
    ("step", "sizes", "taken"),
    [
        (NCHW.step("in_registers"), (32, 512, 7, 7), (4, 416)),
        (NCHW.step("in_registers"), (10, 5, 28, 28), (16, 512)),
        (NHWC.step("in_registers"), (32, 512, 7, 7), (2, 800)),
        (NHWC.step("in_registers"), (3, 5, 28, 28), (3, 800)),
    ],
    ids=lambda value: getattr(value, "path", str(value)),
)
def test_what_the_registers_of_a_block_keep(step, sizes, taken):
    problem = norm.BatchBackward(*sizes, layout=step.SUPPORTED["layout"][0])
    assert step.geometry(problem) == taken
    with pytest.raises(ValueError, match=r"and a block keeps (8192|3072): choose another step"):
        step.geometry(norm.BatchBackward(70, 1, 16, 16 * 16, layout=problem.layout))


@pytest.mark.parametrize("share", [1, 2])
@pytest.mark.parametrize("step", [NCHW.step("in_registers"), NHWC.step("in_registers")], ids=lambda step: step.path)
def test_a_thread_keeps_several_vectors(step, share, monkeypatch):
    name, value = ("MAX_THREADS", 128) if hasattr(step.module, "MAX_THREADS") else ("MAX_WARPS", 4)
    monkeypatch.setattr(step.module, name, value // share)
    for format in step.formats:
        problem = norm.BatchBackward(5, 6, 5, 4, layout=step.SUPPORTED["layout"][0])
        before = problem.operands(format)
        found = step.simulate(*before, format=format)
        assert found.errors == () and problem.is_right(before, found.operands, format)


def test_what_a_cluster_keeps():
    overlapped = NCHW.step("overlapped")
    taken = {
        (64, 256, 56, 56): (16, 8, 1024, 6272),  # all of it
        (32, 64, 112, 112): (16, 8, 1024, 7104),  # of 12544 vectors
        (32, 512, 7, 7): (512, 1, 384, 1568),
    }
    for sizes, (clusters, blocks, threads, room) in taken.items():
        width = 4 if sizes[2] * sizes[3] % 4 == 0 else 1
        assert overlapped.geometry(norm.BatchBackward(*sizes), 4, width) == (clusters, blocks, threads, room), sizes


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize(
    ("sms", "most_bytes", "sizes", "blocks"),
    [(2, 2**17, (13, 7, 6, 6), 1), (8, 2048, (13, 7, 6, 6), 4), (16, 1024, (13, 7, 5, 7), 8)],
    ids=["all kept", "most kept", "some kept, no vectors"],
)
def test_a_cluster_takes_several_channels_and_reads_again_what_it_has_no_room_for(
    sms, most_bytes, sizes, blocks, format, monkeypatch
):
    overlapped = NCHW.step("overlapped")
    give_sms(monkeypatch, sms)
    for name, value in (("MAX_BLOCKS_PER_SM", 1), ("MAX_BYTES", most_bytes)):
        monkeypatch.setattr(overlapped.module, name, value)
    problem = norm.BatchBackward(*sizes, relu=sms > 2)
    assert overlapped.geometry(problem, format.itemsize, 4 if sizes[2] == 6 else 1)[:2] == (2, blocks)
    before = problem.operands(format)
    found = overlapped.simulate(*before, format=format)
    assert found.errors == () and problem.is_right(before, found.operands, format)


def test_rows_are_as_long_as_the_chip_has_room_for():
    one_read = NHWC.step("one_read")
    taken = {
        (64, 256, 56, 56): (8, 1, 132, 6720),  # of 128 bytes
        (32, 64, 112, 112): (4, 1, 132, 6720),  # of 64 bytes
        (32, 512, 7, 7): (8, 16, 8, 1568),  # all channels at once
    }
    for sizes, (across, teams, blocks, room) in taken.items():
        problem = norm.BatchBackward(*sizes, layout="NHWC")
        assert one_read.geometry(problem, 4, 4) == (across, teams, blocks, room), sizes


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize(
    ("sms", "most_bytes", "l2_bytes", "sizes"),
    [(2, 6144, 6144, (13, 40, 6, 6)), (5, 2048, 2048, (13, 70, 6, 6)), (4, 2**16, 0, (13, 39, 25, 7))],
    ids=["two teams", "some kept", "no vectors"],
)
def test_a_team_takes_channels_after_channels(sms, most_bytes, l2_bytes, sizes, format, monkeypatch):
    one_read = NHWC.step("one_read")
    give_sms(monkeypatch, sms)
    for name, value in (("MAX_BYTES", most_bytes), ("L2_BYTES", l2_bytes)):
        monkeypatch.setattr(one_read.module, name, value)
    problem = norm.BatchBackward(*sizes, layout="NHWC", relu=sms > 2)
    before = problem.operands(format)
    found = one_read.simulate(*before, format=format)
    assert found.errors == () and problem.is_right(before, found.operands, format)
