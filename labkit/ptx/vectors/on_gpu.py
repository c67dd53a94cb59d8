"""GPU code of `load2`, `load4`, `store2` and `store4`: LLVM IR and inline PTX."""

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import vectors
from labkit.ptx.intrinsics import constant, element_pointer, index_types, intrinsic


def _check(array, index, elements):
    index_types(array, index)
    if elements * array.dtype.bitwidth // 8 not in vectors.WIDTHS_BYTES:
        raise TypingError(f"{elements} elements of {array.dtype} are not 8 or 16 bytes")


def _vector_pointer(context, builder, array_type, index_type, array, index, elements):
    """Return a pointer to the vector, and its alignment in bytes."""
    first = element_pointer(context, builder, array_type, index_type, array, index)
    vector = ir.VectorType(context.get_data_type(array_type.dtype), elements)
    return builder.bitcast(first, vector.as_pointer()), elements * array_type.dtype.bitwidth // 8


def _load(elements):
    def definition(typing, array, index):
        _check(array, index, elements)

        def code(context, builder, signature, arguments):
            pointer, alignment = _vector_pointer(context, builder, array, index, *arguments, elements)
            vector = builder.load(pointer, align=alignment)
            return cgutils.pack_array(builder, [builder.extract_element(vector, constant(i)) for i in range(elements)])

        return types.UniTuple(array.dtype, elements)(array, index), code

    return definition


def _store(elements):
    def definition(typing, array, index, *_):
        _check(array, index, elements)

        def code(context, builder, signature, arguments):
            pointer, alignment = _vector_pointer(context, builder, array, index, *arguments[:2], elements)
            vector = ir.VectorType(context.get_data_type(array.dtype), elements)(ir.Undefined)
            for i, value in enumerate(arguments[2:]):
                vector = builder.insert_element(vector, value, constant(i))
            builder.store(vector, pointer, align=alignment)
            return context.get_dummy_value()

        return types.void(array, index, *(array.dtype,) * elements), code

    return definition


intrinsic(vectors.load2)(_load(2))
intrinsic(vectors.load4)(_load(4))
intrinsic(vectors.store2)(_store(2))
intrinsic(vectors.store4)(_store(4))
