"""The machine code of named barriers."""

from numba.cuda import types

from labkit.ptx import named_barriers
from labkit.ptx.intrinsics import VOID, assembly, intrinsic


@intrinsic(named_barriers.barrier_sync)
def _barrier_sync(typing, number, threads):
    def code(context, builder, signature, arguments):
        numbers = [
            context.cast(builder, value, kind, types.uint32)
            for value, kind in zip(arguments, signature.args, strict=True)
        ]
        assembly(builder, "bar.sync $0, $1;", VOID, numbers)
        return context.get_dummy_value()

    return types.void(number, threads), code
