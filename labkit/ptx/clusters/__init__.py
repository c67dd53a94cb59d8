"""Clusters: blocks that run side by side, wait for one another, and reach one another's shared memory.

A block must have begun, and must not end, while others reach its shared memory: all wait for one another by
`cluster_sync` before the first time and after the last.
(CUDA C++ Programming Guide, "Thread Block Clusters", "Distributed Shared Memory"; PTX ISA, `barrier.cluster`, `mapa`,
`ld.shared::cluster`, `st.shared::cluster`; compute capability 9.0.)
"""

from labkit.ptx.clusters.on_lanes import CLUSTERS, Load, Rank, Store, Sync
from labkit.ptx.instruction import instruction

__all__ = ["cluster_load", "cluster_rank", "cluster_store", "cluster_sync"]

WIDTHS_BYTES = (4, 8)


@instruction(Rank(), needs=(9, 0))
def cluster_rank():
    """The number of this block within its cluster, an int32."""


@instruction(Sync(), waits=True, needs=(9, 0), family=CLUSTERS)
def cluster_sync():
    """A barrier of all threads of the cluster."""


@instruction(Load(WIDTHS_BYTES), needs=(9, 0), family=CLUSTERS)
def cluster_load(array, index, cta):
    """The element at `index` of the same shared array in block `cta` of the cluster.

    Parameters
    ----------
    array
        A shared array of elements of 4 or 8 bytes.
    index
        A whole number, or a tuple of them, one for each axis; it does not count from the end.
    cta
        The number of a block in its cluster, as `cluster_rank` gives it.
    """


@instruction(Store(WIDTHS_BYTES), needs=(9, 0), family=CLUSTERS)
def cluster_store(array, index, cta, value):
    """Writes an element of the same shared array in block `cta` of the cluster; as `cluster_load`."""
