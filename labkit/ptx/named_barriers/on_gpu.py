"""The machine code of named barriers."""

from numba.cuda import types

from labkit.ptx import named_barriers
from labkit.ptx.intrinsics import VOID, assembly, intrinsic


def _barrier(text):
    def definition(typing, number, threads):
        def code(context, builder, signature, arguments):
            numbers = [
                context.cast(builder, value, kind, types.uint32)
                for value, kind in zip(arguments, signature.args, strict=True)
            ]
            assembly(builder, text, VOID, numbers)
            return context.get_dummy_value()

        return types.void(number, threads), code

    return definition


intrinsic(named_barriers.barrier_arrive)(_barrier("bar.arrive $0, $1;"))
intrinsic(named_barriers.barrier_sync)(_barrier("bar.sync $0, $1;"))
