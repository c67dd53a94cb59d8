"""Asynchronous copies from global to shared memory: `cp.async`.

A copy runs asynchronously to the thread that issues it. `cp_async_commit` groups all copies since the last commit;
`cp_async_wait(n)` waits until at most the n newest groups of this thread are in flight. Other threads may read the
copied elements after a barrier that follows the wait. (PTX ISA, "Data Movement and Conversion Instructions:
Asynchronous copy"; compute capability 8.0.)
"""

from labkit.ptx.copies.on_lanes import COPIES, Copy, Wait, commit
from labkit.ptx.instruction import instruction
from labkit.simulator.instruction import Plain

__all__ = ["cp_async", "cp_async_commit", "cp_async_wait"]

WIDTHS_BYTES = (4, 8, 16)
PAST_L1 = (16,)  # widths, in bytes, that bypass L1


@instruction(Copy(WIDTHS_BYTES, PAST_L1), needs=(8, 0), family=COPIES)
def cp_async(tile, index, source, source_index, width_bytes, valid_bytes):
    """Begin a copy of `width_bytes` bytes from an element of a global array on to one of a shared array.

    Parameters
    ----------
    tile, index
        Shared array, and index of the target.
    source, source_index
        Global array of elements of the same size, and index of the source.
    width_bytes
        4, 8 or 16, a compile-time constant; both addresses are multiples of it. 16 bytes bypass L1.
    valid_bytes
        Number of bytes to read, 0 to `width_bytes`; zeros replace the others.
    """


@instruction(Plain(commit), needs=(8, 0), family=COPIES)
def cp_async_commit():
    """Group all copies that this thread began since the last commit; the group may be empty."""


@instruction(Wait(), needs=(8, 0), family=COPIES)
def cp_async_wait(pending):
    """Wait until at most the `pending` newest of this thread's groups are in flight; a compile-time constant."""
