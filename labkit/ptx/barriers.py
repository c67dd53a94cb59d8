"""Barriers in shared memory (`mbarrier`), barriers of some warps, of a cluster, and fences.

An mbarrier is a uint64 of shared memory. It counts the arrivals of a phase, and the bytes of asynchronous copies that
the phase still expects; when both are down to nothing, the phase is complete and the next one begins. Phases are
told apart by their parity: the first is 0. A fresh barrier lets a wait for parity 1 pass at once, as if the phase
before the first were complete. (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"; copies
count on it from compute capability 9.0.)
"""

from labkit.ptx.instruction import instruction
from labkit.simulator.checks import proxies
from labkit.simulator.instructions import INSTRUCTIONS, clusters, mbarriers
from labkit.simulator.instructions.named_barriers import Sync


@instruction
def mbarrier_init(barriers, i, count):
    """One thread sets up `barriers[i]` for phases of `count` arrivals; `mbarrier_init_fence` and a barrier of the block
    (of the cluster) follow before others use it."""


@instruction
def mbarrier_init_fence():
    """Makes the barriers that this thread set up known to the copy engine and to the cluster."""


@instruction
def mbarrier_arrive(barriers, i):
    """Arrives: what this thread did before is seen by those whose wait for this phase passes."""


@instruction
def mbarrier_expect(barriers, i, bytes):
    """Arrives, and makes the phase expect `bytes` more of copies."""


@instruction
def mbarrier_wait(barriers, i, parity):
    """Waits until the phase of this parity is complete."""


@instruction
def mbarrier_arrive_at(barriers, i, cta):
    """Arrives at the same barrier of block `cta` of the cluster."""


@instruction
def barrier_sync(number, threads):
    """A barrier of `threads` threads, whole warps: those that name the same number, 1 to 15, wait for one another."""


@instruction
def cluster_rank():
    """The number of this block within its cluster, an int32."""


@instruction
def cluster_sync():
    """A barrier of all threads of the cluster."""


@instruction
def fence_async():
    """Shows the copy engine and the tensor cores what this thread wrote to shared memory (`fence.proxy.async`)."""


# --- on lanes ------------------------------------------------------------------------------------

INSTRUCTIONS |= {
    "ptx.mbarrier_init": mbarriers.OnBarrier(mbarriers.init, "store", ("a count of arrivals",)),
    "ptx.mbarrier_init_fence": mbarriers.Plain(mbarriers.fence_init),
    "ptx.mbarrier_arrive": mbarriers.OnBarrier(mbarriers.arrive, "atomic"),
    "ptx.mbarrier_expect": mbarriers.OnBarrier(mbarriers.arrive, "atomic", ("a number of bytes",)),
    "ptx.mbarrier_wait": mbarriers.Wait(),
    "ptx.barrier_sync": Sync(),
    "ptx.mbarrier_arrive_at": mbarriers.ArriveAt(),
    "ptx.cluster_rank": clusters.Rank(),
    "ptx.cluster_sync": clusters.Sync(),
    "ptx.fence_async": mbarriers.Plain(proxies.fence),
}
