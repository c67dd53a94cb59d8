"""Barriers of some warps of a block, by number: `bar.sync`.

(PTX ISA, "Parallel Synchronization and Communication Instructions: barrier".)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.named_barriers.on_lanes import Sync

__all__ = ["barrier_sync"]


@instruction(Sync(), waits=True)
def barrier_sync(number, threads):
    """A barrier of `threads` threads, whole warps: those that name the same number, 1 to 15, wait for one another."""
