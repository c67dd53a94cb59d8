"""The machine code of clusters."""

from numba.cuda import types

from labkit.ptx import clusters
from labkit.ptx.intrinsics import I32, assembly, intrinsic, plain

intrinsic(clusters.cluster_sync)(
    plain("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;")
)


@intrinsic(clusters.cluster_rank)
def _cluster_rank(typing):
    def code(context, builder, signature, arguments):
        return assembly(builder, "mov.u32 $0, %cluster_ctarank;", I32, [], memory=False)

    return types.int32(), code
