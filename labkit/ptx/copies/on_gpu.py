"""GPU code of `cp.async`: LLVM IR and inline PTX."""

from numba.cuda import types
from numba.cuda.core.errors import TypingError

from labkit.ptx import copies
from labkit.ptx.intrinsics import (
    I64,
    assembly_code,
    bare_instruction,
    element_pointer,
    index_types,
    intrinsic,
    literal_value,
    shared_address,
    with_literal,
)

CACHES = {4: "ca", 8: "ca", 16: "cg"}


@intrinsic(copies.cp_async)
def _cp_async(typing, tile, index, source, source_index, width_bytes, valid_bytes):
    width = literal_value(width_bytes, "the width of a copy")
    if width not in CACHES:
        raise TypingError(f"a copy has 4, 8 or 16 bytes, not {width}")
    if tile.dtype.bitwidth != source.dtype.bitwidth:
        raise TypingError(f"a copy needs elements of one size, not {source.dtype} and {tile.dtype}")
    index_types(tile, index)
    index_types(source, source_index)

    def operands(context, builder, signature, arguments):
        target = shared_address(context, builder, tile, index, *arguments[:2])
        begin = builder.ptrtoint(element_pointer(context, builder, source, source_index, *arguments[2:4]), I64)
        return [target, begin, context.cast(builder, arguments[5], signature.args[5], types.uint32)]

    text = f"cp.async.{CACHES[width]}.shared.global [$0], [$1], {width}, $2;"
    kinds = tile, index, source, source_index, width_bytes, valid_bytes
    return types.void(*kinds), assembly_code(text, operands)


intrinsic(copies.cp_async_commit)(bare_instruction("cp.async.commit_group;"))
intrinsic(copies.cp_async_wait)(with_literal("cp.async.wait_group {};", "how many groups may be in flight"))
