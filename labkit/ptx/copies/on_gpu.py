"""The machine code of `cp.async`."""

from numba.cuda import types
from numba.cuda.core.errors import TypingError

from labkit.ptx import copies
from labkit.ptx.intrinsics import (
    I64,
    VOID,
    assembly,
    index_kinds,
    intrinsic,
    literal,
    plain,
    pointer,
    shared_address,
)  # fmt: skip

CACHES = {4: "ca", 8: "ca", 16: "cg"}


@intrinsic(copies.cp_async)
def _cp_async(typing, tile, index, source, source_index, width_bytes, valid_bytes):
    width = literal(width_bytes, "the width of a copy")
    if width not in CACHES:
        raise TypingError(f"a copy has 4, 8 or 16 bytes, not {width}")
    if tile.dtype.bitwidth != source.dtype.bitwidth:
        raise TypingError(f"a copy needs elements of one size, not {source.dtype} and {tile.dtype}")
    index_kinds(tile, index)
    index_kinds(source, source_index)

    def code(context, builder, signature, arguments):
        to = shared_address(context, builder, tile, index, *arguments[:2])
        begin = builder.ptrtoint(pointer(context, builder, source, source_index, *arguments[2:4]), I64)
        valid = context.cast(builder, arguments[5], signature.args[5], types.uint32)
        text = f"cp.async.{CACHES[width]}.shared.global [$0], [$1], {width}, $2;"
        assembly(builder, text, VOID, [to, begin, valid])
        return context.get_dummy_value()

    return types.void(tile, index, source, source_index, width_bytes, valid_bytes), code


intrinsic(copies.cp_async_commit)(plain("cp.async.commit_group;"))


@intrinsic(copies.cp_async_wait)
def _cp_async_wait(typing, pending):
    groups = literal(pending, "how many groups may be under way")

    def code(context, builder, signature, arguments):
        assembly(builder, f"cp.async.wait_group {groups};", VOID, [])
        return context.get_dummy_value()

    return types.void(pending), code
