"""GPU code of named barriers: LLVM IR and inline PTX."""

from numba.cuda import types

from labkit.ptx import named_barriers
from labkit.ptx.intrinsics import assembly_code, intrinsic


def _barrier(text):
    def operands(context, builder, signature, arguments):
        values = zip(arguments, signature.args, strict=True)
        return [context.cast(builder, value, kind, types.uint32) for value, kind in values]

    return lambda typing, number, threads: (types.void(number, threads), assembly_code(text, operands))


intrinsic(named_barriers.barrier_arrive)(_barrier("bar.arrive $0, $1;"))
intrinsic(named_barriers.barrier_sync)(_barrier("bar.sync $0, $1;"))
