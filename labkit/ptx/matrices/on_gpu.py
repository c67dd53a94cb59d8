"""GPU code of `ldmatrix`, `stmatrix` and `mma.sync`: LLVM IR and inline PTX."""

from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import formats, matrices
from labkit.ptx.formats.on_gpu import PTX_NAMES, list_names
from labkit.ptx.intrinsics import (
    F32,
    I32,
    assembly_code,
    constant,
    element_pointer,
    emit_assembly,
    index_types,
    intrinsic,
    literal_value,
    shared_address,
    unpack,
)

K_BITS = 256  # of a row of an operand, per product
DEPTH = {number: K_BITS // format.bits for number, format in formats.ON_LANES.items()}


def _ldmatrix(count, transposed):
    def definition(typing, tile, index):
        index_types(tile, index)

        def code(context, builder, signature, arguments):
            row = shared_address(context, builder, tile, index, *arguments)
            results = ", ".join(f"${i}" for i in range(count))
            text = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}.shared.b16 {{{results}}}, [${count}];"
            loaded = emit_assembly(builder, text, (I32,) * count, [row])
            return cgutils.pack_array(builder, unpack(builder, loaded, count))

        return types.UniTuple(types.uint32, count)(tile, index), code

    return definition


intrinsic(matrices.ldmatrix2)(_ldmatrix(2, False))
intrinsic(matrices.ldmatrix4)(_ldmatrix(4, False))
intrinsic(matrices.ldmatrix2_transposed)(_ldmatrix(2, True))
intrinsic(matrices.ldmatrix4_transposed)(_ldmatrix(4, True))


def _stmatrix4(transposed):
    text = f"stmatrix.sync.aligned.m8n8.x4{'.trans' * transposed}.shared.b16 [$0], {{$1, $2, $3, $4}};"

    def definition(typing, tile, index, *_):
        index_types(tile, index)

        def operands(context, builder, signature, arguments):
            return [shared_address(context, builder, tile, index, *arguments[:2]), *arguments[2:]]

        return types.void(tile, index, *(types.uint32,) * 4), assembly_code(text, operands)

    return definition


intrinsic(matrices.stmatrix4)(_stmatrix4(False))
intrinsic(matrices.stmatrix4_transposed)(_stmatrix4(True))


def accumulators(context, builder, array_type, index_type, array, index, count, kind=F32):
    """Return pointers to `count` neighbouring elements of a local array."""
    first = element_pointer(context, builder, array_type, index_type, array, index)
    return [builder.gep(first, [constant(i)]) for i in range(count)]


def check_accumulators(acc, index, FORMAT):
    """Return the format's number; raise TypingError where the accumulators have another type than its sums."""
    number = literal_value(FORMAT, "the format")
    if number not in matrices.FORMATS:
        raise TypingError(f"the format is one of ptx.{list_names(matrices.FORMATS, 'and')}")
    index_types(acc, index)
    sums = matrices.SUMS[number]
    if acc.dtype != sums:
        raise TypingError(f"this format adds up in {sums}: make the accumulators of that type")
    return number


@intrinsic(matrices.mma)
def _mma(typing, acc, index, a, b, FORMAT):
    number = check_accumulators(acc, index, FORMAT)
    name, depth = PTX_NAMES[number], DEPTH[number]
    result, sums = (I32, "s32") if matrices.SUMS[number] == types.int32 else (F32, "f32")

    def code(context, builder, signature, arguments):
        pointers = accumulators(context, builder, acc, index, *arguments[:2], 4)
        held = [builder.load(pointer) for pointer in pointers]
        fragments = [*cgutils.unpack_tuple(builder, arguments[2]), *cgutils.unpack_tuple(builder, arguments[3])]
        text = (
            f"mma.sync.aligned.m16n8k{depth}.row.col.{sums}.{name}.{name}.{sums} "
            "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$0, $1, $2, $3};"
        )
        total = emit_assembly(builder, text, (result,) * 4, fragments, ties=held, memory=False)
        for pointer, value in zip(pointers, unpack(builder, total, 4), strict=True):
            builder.store(value, pointer)
        return context.get_dummy_value()

    fragment = types.UniTuple
    return types.void(acc, index, fragment(types.uint32, 4), fragment(types.uint32, 2), FORMAT), code
