"""The machine code of TMA copies."""

from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import tensor_copies
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
from labkit.ptx.tensor_copies.map_types import PixelMapType, TensorMapType


def _place(context, builder, kinds, place, kind=types.int32):
    """A place as PTX wants it: the last axis first."""
    values = cgutils.unpack_tuple(builder, place)
    return [context.cast(builder, v, given, kind) for v, given in zip(values, kinds, strict=True)][::-1]


def _check_map(tensor_map, kinds=(TensorMapType,)):
    if type(tensor_map) not in kinds:
        needed = " or a ".join(kind.__name__.removesuffix("Type") for kind in kinds)
        raise TypingError(f"this copy needs a {needed}: make one on the host, and pass it to the kernel")


def _check_place(place, count, what="box"):
    if not isinstance(place, types.BaseTuple) or len(place) != count:
        raise TypingError(f"the place of a {what} is a tuple of {count} whole numbers here")


def _operands(first, count):
    """So many operands of inline assembly, as PTX writes a place."""
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"


def _load(*kinds, of_pixels=False, multicast=False):
    """`kinds`: the types of all arguments."""
    tile, index, tensor_map, place, *offset = kinds[: 4 + of_pixels]
    barriers, i, *ctas = kinds[4 + of_pixels :]
    _check_map(tensor_map, (PixelMapType if of_pixels else TensorMapType,))
    _check_place(place, tensor_map.axes, "first window" if of_pixels else "box")
    for pair in offset:
        _check_place(pair, 2, "pixel in its window")
    index_kinds(tile, index)
    index_kinds(barriers, i)
    axes = tensor_map.axes

    def code(context, builder, signature, arguments):
        to = shared_address(context, builder, tile, index, *arguments[:2])
        coordinates = _place(context, builder, place, arguments[3])
        barrier = shared_address(context, builder, barriers, i, *arguments[4 + of_pixels : 6 + of_pixels])
        operands = [to, arguments[2], barrier, *coordinates]
        given, mode, delivery = "", "tile", ""
        if of_pixels:
            mode, given = "im2col", f", {_operands(len(operands), 2)}"
            operands += _place(context, builder, offset[0], arguments[4], types.uint16)
        if multicast:
            delivery, given = ".multicast::cluster", f"{given}, ${len(operands)}"
            operands.append(context.cast(builder, arguments[-1], ctas[0], types.uint16))
        text = (
            f"cp.async.bulk.tensor.{axes}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes{delivery} "
            f"[$0], [$1, {_operands(3, axes)}], [$2]{given};"
        )
        assembly(builder, text, VOID, operands)
        return context.get_dummy_value()

    return types.void(*kinds), code


@intrinsic(tensor_copies.tma_load)
def _tma_load(typing, tile, index, tensor_map, place, barriers, i):
    return _load(tile, index, tensor_map, place, barriers, i)


@intrinsic(tensor_copies.tma_load_multicast)
def _tma_load_multicast(typing, tile, index, tensor_map, place, barriers, i, ctas):
    return _load(tile, index, tensor_map, place, barriers, i, ctas, multicast=True)


@intrinsic(tensor_copies.tma_load_pixels)
def _tma_load_pixels(typing, tile, index, pixel_map, place, offset, barriers, i):
    return _load(tile, index, pixel_map, place, offset, barriers, i, of_pixels=True)


@intrinsic(tensor_copies.tma_load_pixels_multicast)
def _tma_load_pixels_multicast(typing, tile, index, pixel_map, place, offset, barriers, i, ctas):
    return _load(tile, index, pixel_map, place, offset, barriers, i, ctas, of_pixels=True, multicast=True)


@intrinsic(tensor_copies.tma_prefetch)
def _tma_prefetch(typing, tensor_map):
    _check_map(tensor_map, (TensorMapType, PixelMapType))

    def code(context, builder, signature, arguments):
        assembly(builder, "prefetch.tensormap [$0];", VOID, arguments)
        return context.get_dummy_value()

    return types.void(tensor_map), code


@intrinsic(tensor_copies.tma_store)
def _tma_store(typing, tensor_map, place, tile, index):
    _check_map(tensor_map)
    _check_place(place, tensor_map.axes)
    index_kinds(tile, index)
    axes = tensor_map.axes

    def code(context, builder, signature, arguments):
        coordinates = _place(context, builder, place, arguments[1])
        begin = shared_address(context, builder, tile, index, *arguments[2:4])
        where = _operands(2, axes)
        text = f"cp.async.bulk.tensor.{axes}d.global.shared::cta.tile.bulk_group [$0, {where}], [$1];"
        assembly(builder, text, VOID, [arguments[0], begin, *coordinates])
        return context.get_dummy_value()

    return types.void(tensor_map, place, tile, index), code


@intrinsic(tensor_copies.tma_add)
def _tma_add(typing, array, index, tile, tile_index, count):
    number = literal(count, "how many numbers are added")
    if array.dtype != types.float32 or tile.dtype != types.float32:
        raise TypingError(f"float32 is added to float32 here, not {tile.dtype} to {array.dtype}")
    if number <= 0 or number % 4:
        raise TypingError(f"a multiple of 4 numbers is added, not {number}")
    index_kinds(array, index)
    index_kinds(tile, tile_index)

    def code(context, builder, signature, arguments):
        to = builder.ptrtoint(pointer(context, builder, array, index, *arguments[:2]), I64)
        begin = shared_address(context, builder, tile, tile_index, *arguments[2:4])
        text = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], {4 * number};"
        assembly(builder, text, VOID, [to, begin])
        return context.get_dummy_value()

    return types.void(array, index, tile, tile_index, count), code


@intrinsic(tensor_copies.tma_store_wait)
def _tma_store_wait(typing, pending):
    groups = literal(pending, "how many groups may be under way")

    def code(context, builder, signature, arguments):
        assembly(builder, f"cp.async.bulk.wait_group.read {groups};", VOID, [])
        return context.get_dummy_value()

    return types.void(pending), code


intrinsic(tensor_copies.tma_store_commit)(plain("cp.async.bulk.commit_group;"))
