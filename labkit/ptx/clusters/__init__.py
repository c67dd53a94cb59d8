"""Clusters: blocks that run side by side, and wait for one another.

(CUDA C++ Programming Guide, "Thread Block Clusters"; PTX ISA, `barrier.cluster`; compute capability 9.0.)
"""

from labkit.ptx.clusters.on_lanes import Rank, Sync
from labkit.ptx.instruction import instruction

__all__ = ["cluster_rank", "cluster_sync"]


@instruction(Rank(), needs=(9, 0))
def cluster_rank():
    """The number of this block within its cluster, an int32."""


@instruction(Sync(), waits=True, needs=(9, 0))
def cluster_sync():
    """A barrier of all threads of the cluster."""
