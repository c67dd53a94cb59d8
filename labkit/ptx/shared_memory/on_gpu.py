"""GPU code of arrays in dynamic shared memory: LLVM IR and inline PTX."""

from itertools import accumulate

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import shared_memory
from labkit.ptx.intrinsics import SHARED, constant, intrinsic, literal_value

POOL = "labkit_dynamic_shared_memory"


@intrinsic(shared_memory.shared_array)
def _shared_array(typing, first_byte, shape, dtype):
    begin = literal_value(first_byte, "where a shared array begins")
    sides = shape if isinstance(shape, types.BaseTuple) else [shape]
    lengths = [literal_value(side, "the shape of a shared array") for side in sides]
    itemsize = dtype.dtype.bitwidth // 8
    if begin % itemsize:
        raise TypingError(f"an array of {dtype.dtype} begins at a multiple of {itemsize} bytes, not at {begin}")
    kind = types.Array(dtype.dtype, len(lengths), "C")

    def code(context, builder, signature, arguments):
        pool = builder.module.globals.get(POOL)
        if pool is None:
            pool = cgutils.add_global_variable(builder.module, ir.ArrayType(ir.IntType(8), 0), POOL, SHARED)
            pool.align, pool.linkage = shared_memory.ALIGNMENT_BYTES, "external"
        address = builder.gep(pool, [constant(0), constant(begin)])
        array = context.make_array(kind)(context, builder)
        strides = list(accumulate(reversed(lengths[1:]), lambda a, b: a * b, initial=itemsize))[::-1]
        context.populate_array(
            array,
            data=builder.addrspacecast(address, array.data.type, "generic"),
            shape=[context.get_constant(types.intp, n) for n in lengths],
            strides=[context.get_constant(types.intp, n) for n in strides],
            itemsize=context.get_constant(types.intp, itemsize),
            meminfo=None,
        )
        return array._getvalue()

    return kind(first_byte, shape, dtype), code
