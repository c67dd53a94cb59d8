"""Barriers of some warps of a block, by number: `bar.sync`, and `bar.arrive` for those who need not wait.

A barrier opens when as many threads have come to it as they all say, and then begins anew. (PTX ISA, "Parallel
Synchronization and Communication Instructions: barrier".)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.named_barriers.on_lanes import NAMED_BARRIERS, Come

__all__ = ["barrier_arrive", "barrier_sync"]


@instruction(Come(waits=False), family=NAMED_BARRIERS)
def barrier_arrive(number, threads):
    """Comes to a barrier of `threads` threads, whole warps, and goes on.

    Those who wait there with `barrier_sync` see what this warp did before; it knows nothing of what they do. A warp
    comes once until the barrier opens.
    """


@instruction(Come(waits=True), waits=True, family=NAMED_BARRIERS)
def barrier_sync(number, threads):
    """A barrier of `threads` threads, whole warps: those that name the same number, 1 to 15, wait for one another."""
