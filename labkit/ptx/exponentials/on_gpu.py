"""The machine code of powers of two."""

from numba.cuda import types

from labkit.ptx import exponentials
from labkit.ptx.intrinsics import F32, assembly, intrinsic


@intrinsic(exponentials.exp2)
def _exp2(typing, x):
    def code(context, builder, signature, arguments):
        return assembly(builder, "ex2.approx.ftz.f32 $0, $1;", F32, arguments, memory=False)

    return types.float32(types.float32), code
