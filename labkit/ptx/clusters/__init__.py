"""Clusters: blocks that run together, wait for one another, and access one another's shared memory.

A block must have begun, and must not end, while others access its shared memory: all call `cluster_sync` before the
first access and after the last.
(CUDA C++ Programming Guide, "Thread Block Clusters", "Distributed Shared Memory"; PTX ISA, `barrier.cluster`, `mapa`,
`ld.shared::cluster`, `st.shared::cluster`; compute capability 9.0.)
"""

from labkit.ptx.clusters.on_lanes import CLUSTERS, Load, Rank, Store, Sync
from labkit.ptx.instruction import instruction

__all__ = ["cluster_load", "cluster_rank", "cluster_store", "cluster_sync"]

WIDTHS_BYTES = (4, 8)


@instruction(Rank(), needs=(9, 0))
def cluster_rank():
    """Return the number of this block within its cluster, an int32."""


@instruction(Sync(), waits=True, needs=(9, 0), family=CLUSTERS)
def cluster_sync():
    """Wait for all threads of the cluster."""


@instruction(Load(WIDTHS_BYTES), needs=(9, 0), family=CLUSTERS)
def cluster_load(array, index, cta):
    """Read an element of the same shared array in block `cta` of the cluster.

    Parameters
    ----------
    array
        Shared array of elements of 4 or 8 bytes.
    index
        Integer, or a tuple of one per axis; negative indices are invalid.
    cta
        Number of a block in its cluster, as `cluster_rank` returns it.
    """


@instruction(Store(WIDTHS_BYTES), needs=(9, 0), family=CLUSTERS)
def cluster_store(array, index, cta, value):
    """Write an element of the same shared array in block `cta` of the cluster; see `cluster_load`."""
