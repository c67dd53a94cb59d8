"""The machine code of mbarriers."""

from numba.cuda import types

from labkit.ptx import mbarriers
from labkit.ptx.intrinsics import VOID, assembly, index_kinds, intrinsic, plain, shared_address

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


intrinsic(mbarriers.mbarrier_init)(on_barrier("mbarrier.init.shared::cta.b64 [$0], $1;", 1))
intrinsic(mbarriers.mbarrier_arrive)(on_barrier("mbarrier.arrive.shared::cta.b64 _, [$0];"))
intrinsic(mbarriers.mbarrier_expect)(on_barrier("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", 1))
intrinsic(mbarriers.mbarrier_wait)(on_barrier(WAIT, 1))
intrinsic(mbarriers.mbarrier_arrive_at)(on_barrier(ARRIVE_AT, 1))
intrinsic(mbarriers.mbarrier_init_fence)(plain("fence.mbarrier_init.release.cluster;"))
