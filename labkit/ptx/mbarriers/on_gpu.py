"""GPU code of mbarriers: LLVM IR and inline PTX."""

from numba.cuda import types

from labkit.ptx import mbarriers
from labkit.ptx.intrinsics import assembly_code, bare_instruction, index_types, intrinsic, shared_address

WAIT = """{
.reg .pred done;
again_${:uid}:
mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;
@done bra passed_${:uid};
bra again_${:uid};
passed_${:uid}:
}"""
# No `.release.cluster`: its GPU-wide fence cost a third of the speed of a GEMM whose blocks share tiles. The tensor
# cores have read what is released here, and `wgmma_wait` has waited for that.
ARRIVE_AT = """{
.reg .b32 there;
mapa.shared::cluster.u32 there, $0, $1;
mbarrier.arrive.shared::cluster.b64 _, [there];
}"""


def on_barrier(text):
    """Return the definition of an instruction on an mbarrier, which is operand 0, and on whole numbers."""

    def definition(typing, array, i, *kinds):
        index_types(array, i)

        def operands(context, builder, signature, arguments):
            numbers = zip(arguments[2:], signature.args[2:], strict=True)
            return [
                shared_address(context, builder, array, i, *arguments[:2]),
                *(context.cast(builder, value, kind, types.uint32) for value, kind in numbers),
            ]

        return types.void(array, i, *kinds), assembly_code(text, operands)

    return definition


intrinsic(mbarriers.mbarrier_init)(on_barrier("mbarrier.init.shared::cta.b64 [$0], $1;"))
intrinsic(mbarriers.mbarrier_arrive)(on_barrier("mbarrier.arrive.shared::cta.b64 _, [$0];"))
intrinsic(mbarriers.mbarrier_expect)(on_barrier("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"))
intrinsic(mbarriers.mbarrier_wait)(on_barrier(WAIT))
intrinsic(mbarriers.mbarrier_arrive_at)(on_barrier(ARRIVE_AT))
intrinsic(mbarriers.mbarrier_init_fence)(bare_instruction("fence.mbarrier_init.release.cluster;"))
