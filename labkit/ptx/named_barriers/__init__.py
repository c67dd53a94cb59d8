"""Named barriers of some warps of a block: `bar.sync`, and `bar.arrive` for warps that need not wait.

A barrier opens when the number of threads that they all give have arrived, and is then reusable. (PTX ISA, "Parallel
Synchronization and Communication Instructions: barrier".)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.named_barriers.on_lanes import NAMED_BARRIERS, BarrierCall

__all__ = ["barrier_arrive", "barrier_sync"]


@instruction(BarrierCall(waits=False), family=NAMED_BARRIERS)
def barrier_arrive(number, threads):
    """Arrive at a barrier of `threads` threads, whole warps, without waiting.

    Warps that wait there with `barrier_sync` see this warp's earlier writes, but not the reverse. A warp arrives once
    until the barrier opens.
    """


@instruction(BarrierCall(waits=True), waits=True, family=NAMED_BARRIERS)
def barrier_sync(number, threads):
    """Wait at the barrier of a number, 1 to 15, until `threads` threads, whole warps, have arrived."""
