"""GPU code of powers of two: LLVM IR and inline PTX."""

from numba.cuda import types

from labkit.ptx import exponentials
from labkit.ptx.intrinsics import intrinsic, pure_instruction

intrinsic(exponentials.exp2)(pure_instruction("ex2.approx.ftz.f32 $0, $1;", types.float32, types.float32))
