"""The machine code of mbarriers, named barriers, clusters and fences."""

from numba.cuda import types

from labkit.ptx import barriers
from labkit.ptx.on_gpu.definitions import I32, VOID, assembly, index_kinds, intrinsic, plain, shared_address

WAIT = """{
.reg .pred done;
again_${:uid}:
mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;
@done bra passed_${:uid};
bra again_${:uid};
passed_${:uid}:
}"""
# No `.release.cluster`: the fence of the whole GPU that it brings cost a third of the speed of a GEMM whose blocks
# share tiles. What is released here has been read by the tensor cores, and `wgmma_wait` waited for that.
ARRIVE_AT = """{
.reg .b32 there;
mapa.shared::cluster.u32 there, $0, $1;
mbarrier.arrive.shared::cluster.b64 _, [there];
}"""


def on_barrier(text, operands=0):
    """The definition of an instruction on an mbarrier, which is operand 0, and on some whole numbers."""

    def write(typing, array, i, *kinds):
        index_kinds(array, i)

        def code(context, builder, signature, arguments):
            place = shared_address(context, builder, array, i, *arguments[:2])
            numbers = [
                context.cast(builder, value, kind, types.uint32)
                for value, kind in zip(arguments[2:], signature.args[2:], strict=True)
            ]
            assembly(builder, text, VOID, [place, *numbers])
            return context.get_dummy_value()

        return types.void(array, i, *kinds), code

    if operands:
        return lambda typing, array, i, number: write(typing, array, i, number)
    return lambda typing, array, i: write(typing, array, i)


intrinsic(barriers.mbarrier_init)(on_barrier("mbarrier.init.shared::cta.b64 [$0], $1;", 1))
intrinsic(barriers.mbarrier_arrive)(on_barrier("mbarrier.arrive.shared::cta.b64 _, [$0];"))
intrinsic(barriers.mbarrier_expect)(on_barrier("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", 1))
intrinsic(barriers.mbarrier_wait)(on_barrier(WAIT, 1))
intrinsic(barriers.mbarrier_arrive_at)(on_barrier(ARRIVE_AT, 1))
intrinsic(barriers.mbarrier_init_fence)(plain("fence.mbarrier_init.release.cluster;"))
intrinsic(barriers.fence_async)(plain("fence.proxy.async.shared::cta;"))
intrinsic(barriers.cluster_sync)(
    plain("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;")
)


@intrinsic(barriers.barrier_sync)
def _barrier_sync(typing, number, threads):
    def code(context, builder, signature, arguments):
        numbers = [
            context.cast(builder, value, kind, types.uint32)
            for value, kind in zip(arguments, signature.args, strict=True)
        ]
        assembly(builder, "bar.sync $0, $1;", VOID, numbers)
        return context.get_dummy_value()

    return types.void(number, threads), code


@intrinsic(barriers.cluster_rank)
def _cluster_rank(typing):
    def code(context, builder, signature, arguments):
        return assembly(builder, "mov.u32 $0, %cluster_ctarank;", I32, [], memory=False)

    return types.int32(), code
