"""Asynchronous copies from global to shared memory: `cp.async`.

A copy runs beside the thread that asked for it. `cp_async_commit` makes a group of all that the thread asked for since
the last one; `cp_async_wait(n)` waits until at most the n newest groups of this thread are under way. Other threads
may read what was copied after a barrier that follows the wait. (PTX ISA, "Data Movement and Conversion Instructions:
Asynchronous copy"; compute capability 8.0.)
"""

from labkit.ptx.copies.on_lanes import COPIES, Commit, Copy, Wait
from labkit.ptx.instruction import instruction

__all__ = ["cp_async", "cp_async_commit", "cp_async_wait"]

WIDTHS_BYTES = (4, 8, 16)
PAST_L1 = (16,)  # bytes wide


@instruction(Copy(WIDTHS_BYTES, PAST_L1), needs=(8, 0), family=COPIES)
def cp_async(tile, index, source, source_index, width_bytes, valid_bytes):
    """Begins a copy of `width_bytes` bytes from an element of a global array on to one of a shared array.

    Parameters
    ----------
    tile, index
        The shared array, and where in it the copy goes.
    source, source_index
        The global array, of elements of the same size, and where in it the copy begins.
    width_bytes
        4, 8 or 16, fixed when the kernel is compiled; both places lie at multiples of it. 16 bytes bypass L1.
    valid_bytes
        How many of them are read, from 0 on; zeros take the place of the others.
    """


@instruction(Commit(), needs=(8, 0), family=COPIES)
def cp_async_commit():
    """Makes a group of all copies that this thread began since the last commit; the group may be empty."""


@instruction(Wait(), needs=(8, 0), family=COPIES)
def cp_async_wait(pending):
    """Waits until at most `pending` of this thread's groups, the newest ones, are under way; fixed at compile time."""
