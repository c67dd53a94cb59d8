"""Memory beside operands: one piece a role, which grows, and which may only be counted."""

import numpy as np
import pytest

from labkit import cuda
from labkit.arrays import workspace
from labkit.arrays.addresses import share_memory
from labkit.arrays.views import OperandSlot
from labkit.arrays.workspace import DUMMY_ADDRESS, CountingWorkspace, Workspace
from labkit.formats import BF16, FP16, FP32
from labkit.simulator import host


def test_a_piece_is_used_again_and_another_role_has_another():
    room = Workspace()
    piece = room.array("left", (4, 4), np.float32)
    assert share_memory(piece, room.array("left", (2, 8), np.uint16))
    assert not share_memory(piece, room.array("right", (4, 4), np.float32))
    assert room.size_bytes == 512


def test_a_piece_that_was_outgrown_stays():
    """Launches before hold it."""
    room = Workspace()
    first = room.array("left", (64,), np.float32)
    larger = room.array("left", (65,), np.float32)
    assert not share_memory(first, larger)
    assert share_memory(larger, room.array("left", (70,), np.float32))
    assert room.size_bytes == 256 + 512


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
def test_what_nobody_has_written_is_no_number_in_the_simulator(format):
    found = Workspace(memory=host).array("left", (4, 4), format.dtype).copy_to_host()
    assert np.isnan(format.decode(found)).all()


def test_counters_begin_at_zero_and_keep_their_place():
    room = Workspace()
    counters = room.counters(3)
    assert (counters.copy_to_host() == 0).all()
    assert share_memory(counters, room.counters(2))


def test_launches_that_run_at_once_take_memory_on_their_stream():
    with workspace.on_stream(cuda.stream()) as room:
        assert room.array("left", (4, 4), np.float32).copy_to_host().shape == (4, 4)
        assert (room.counters(3).copy_to_host() == 0).all()


# --- a workspace that is only counted ------------------------------------------------------------


def test_memory_is_counted_by_roles_and_apart_from_counters():
    room = CountingWorkspace(first_slot=3)
    first, again, second = (room.array(role, (5, 3), np.float32) for role in ("left", "left", "right"))
    counters = room.counters(70)
    assert (room.buffers_bytes, room.counters_bytes, room.size_bytes) == (512, 512, 1024)
    assert first.owner == again.owner == second.owner == OperandSlot(4) and counters.owner == OperandSlot(3)
    begins = [X.address - DUMMY_ADDRESS for X in (first, again, second, counters)]
    assert begins == [0, 0, 256, 0]
    assert (first.shape, first.strides, first.dtype) == ((5, 3), (12, 4), np.float32)


def test_what_is_counted_is_enough_for_all_that_was_asked_for():
    room, ends = CountingWorkspace(), []
    for n in (10, 100, 3, 1000, 70):
        piece = room.array("left", (n,), np.float64)
        ends.append(piece.address + 8 * n - DUMMY_ADDRESS)
    assert max(ends) <= room.buffers_bytes
    assert room.array("left", (1000,), np.float64).address % 256 == DUMMY_ADDRESS % 256


def test_an_array_for_a_parameter_that_is_not_touched_takes_no_memory():
    room = CountingWorkspace()
    nothing = room.unused_array((2, 3), np.float32)
    assert (nothing.shape, nothing.strides, nothing.address, room.size_bytes) == ((2, 3), (12, 4), 0, 0)
    assert Workspace().unused_array((2, 3), np.float32).shape == (2, 3)
