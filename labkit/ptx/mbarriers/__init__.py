"""Barriers in shared memory: `mbarrier`.

An mbarrier is a uint64 of shared memory. It counts the arrivals that a phase still lacks, and the bytes of asynchronous
copies that it still expects. When both are zero, the phase is complete and the next one begins. Phases are identified
by their parity: that of the first is 0. A new barrier lets a wait for parity 1 pass at once, as if the phase before the
first were complete. (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"; copies
count on it from compute capability 9.0.)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.mbarriers import on_lanes
from labkit.ptx.mbarriers.on_lanes import MBARRIERS
from labkit.simulator.instruction import Plain

__all__ = [
    "mbarrier_arrive",
    "mbarrier_arrive_at",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_init_fence",
    "mbarrier_wait",
]

HOPPER = (9, 0)


@instruction(on_lanes.BarrierCall(on_lanes.init, "store", ("a count of arrivals",)), needs=(8, 0), family=MBARRIERS)
def mbarrier_init(barriers, i, count):
    """Initialise `barriers[i]` by one thread, for phases of `count` arrivals.

    `mbarrier_init_fence` and a barrier of the block, or of the cluster, must follow before other threads use it.
    """


@instruction(Plain(on_lanes.fence_init), needs=HOPPER, family=MBARRIERS)
def mbarrier_init_fence():
    """Make the barriers that this thread initialised visible to TMA and to the cluster."""


@instruction(on_lanes.BarrierCall(on_lanes.arrive, "atomic"), needs=(8, 0), family=MBARRIERS)
def mbarrier_arrive(barriers, i):
    """Arrive: threads whose wait for this phase passes see this thread's earlier writes."""


@instruction(on_lanes.BarrierCall(on_lanes.arrive, "atomic", ("a number of bytes",)), needs=HOPPER, family=MBARRIERS)
def mbarrier_expect(barriers, i, bytes):
    """Arrive, and make the phase expect `bytes` more bytes of copies."""


@instruction(on_lanes.Wait(), waits=True, needs=HOPPER, family=MBARRIERS)
def mbarrier_wait(barriers, i, parity):
    """Wait until the phase of this parity is complete."""


@instruction(on_lanes.ArriveAt(), needs=HOPPER, family=MBARRIERS)
def mbarrier_arrive_at(barriers, i, cta):
    """Arrive at the same barrier of block `cta` of the cluster."""
