"""Memory beside operands: one piece a role, which grows, and which no graph that was captured loses."""

import numpy as np
import pytest

from labkit import cuda
from labkit.arrays import workspace
from labkit.arrays.addresses import share_memory
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP16, FP32
from labkit.simulator import host


def test_each_stream_has_memory_of_its_own(monkeypatch):
    monkeypatch.setattr(workspace, "_of_streams", {})
    monkeypatch.setattr(workspace, "handle_of", lambda stream: stream)
    pieces = [workspace.of_stream(stream).array("left", (4, 4), np.float32) for stream in (1, 2, 1)]
    assert not share_memory(pieces[0], pieces[1])
    assert share_memory(pieces[0], pieces[2])


def test_a_piece_is_used_again_and_another_role_has_another():
    room = Workspace()
    piece = room.array("left", (4, 4), np.float32)
    assert share_memory(piece, room.array("left", (2, 8), np.uint16))
    assert not share_memory(piece, room.array("right", (4, 4), np.float32))
    assert room.size_bytes == 512


def test_a_piece_that_was_outgrown_stays_and_all_are_less_than_twice_the_last():
    """A graph may hold its address."""
    room = Workspace()
    first = room.array("left", (64,), np.float32)
    held = [room.array("left", (64 * n,), np.float32) for n in range(2, 40)]
    assert not share_memory(first, held[-1])
    assert any(share_memory(cuda.as_cuda_array(piece), first) for piece in room._pieces["left"])
    assert room.size_bytes < 2 * room._pieces["left"][-1].size <= 4 * 39 * 256


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
def test_what_nobody_has_written_is_no_number_in_the_simulator(format):
    found = Workspace(memory=host).array("left", (4, 4), format.dtype).copy_to_host()
    assert np.isnan(format.decode(found)).all()


def test_counters_begin_at_zero_and_keep_their_place():
    room = Workspace()
    counters = room.counters(3)
    assert (counters.copy_to_host() == 0).all()
    assert share_memory(counters, room.counters(2))


def test_what_is_no_stream_is_told_so(monkeypatch):
    monkeypatch.setattr(workspace.cuda, "on_gpu", lambda: True)
    assert workspace.handle_of(0) == 0
    with pytest.raises(TypeError, match="'mine' is no stream: give one of cuda.stream"):
        workspace.handle_of("mine")


@pytest.mark.needs("gpu")
def test_memory_can_be_had_while_a_graph_is_captured_and_is_zero_where_it_must_be():
    from numba.cuda.cudadrv.driver import binding, driver

    stream, room = cuda.stream(), Workspace()
    handle = binding.CUstream(int(stream.handle))
    driver.cuStreamBeginCapture(handle, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    room.array("left", (1000,), np.float32)
    counters = room.counters(1000)
    driver.cuStreamEndCapture(handle)
    assert (counters.copy_to_host() == 0).all()
