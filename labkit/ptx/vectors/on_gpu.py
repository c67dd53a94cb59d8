"""The machine code of `load2`, `load4`, `store2` and `store4`."""

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import vectors
from labkit.ptx.intrinsics import fixed, index_kinds, intrinsic, pointer


def _check(array, index, elements):
    index_kinds(array, index)
    if elements * array.dtype.bitwidth // 8 not in vectors.WIDTHS_BYTES:
        raise TypingError(f"{elements} elements of {array.dtype} are not 8 or 16 bytes")


def _place(context, builder, array_type, index_type, array, index, elements):
    """A pointer to the vector, and the bytes that it is aligned to."""
    first = pointer(context, builder, array_type, index_type, array, index)
    vector = ir.VectorType(context.get_data_type(array_type.dtype), elements)
    return builder.bitcast(first, vector.as_pointer()), elements * array_type.dtype.bitwidth // 8


def _load(array, index, elements):
    _check(array, index, elements)

    def code(context, builder, signature, arguments):
        place, aligned = _place(context, builder, array, index, *arguments, elements)
        vector = builder.load(place, align=aligned)
        return cgutils.pack_array(builder, [builder.extract_element(vector, fixed(i)) for i in range(elements)])

    return types.UniTuple(array.dtype, elements)(array, index), code


def _store(array, index, elements):
    _check(array, index, elements)

    def code(context, builder, signature, arguments):
        place, aligned = _place(context, builder, array, index, *arguments[:2], elements)
        vector = ir.VectorType(context.get_data_type(array.dtype), elements)(ir.Undefined)
        for i, value in enumerate(arguments[2:]):
            vector = builder.insert_element(vector, value, fixed(i))
        builder.store(vector, place, align=aligned)
        return context.get_dummy_value()

    return types.void(array, index, *(array.dtype,) * elements), code


intrinsic(vectors.load2)(lambda typing, array, index: _load(array, index, 2))
intrinsic(vectors.load4)(lambda typing, array, index: _load(array, index, 4))
intrinsic(vectors.store2)(lambda typing, array, index, a, b: _store(array, index, 2))
intrinsic(vectors.store4)(lambda typing, array, index, a, b, c, d: _store(array, index, 4))
