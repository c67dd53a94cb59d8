"""GPU code of TMA copies: LLVM IR and inline PTX."""

from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import tensor_copies
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
from labkit.ptx.tensor_copies.map_types import PixelMapType, TensorMapType


def _coordinates(context, builder, kinds, place, kind=types.int32):
    """Return coordinates in PTX's order: the last axis first."""
    values = cgutils.unpack_tuple(builder, place)
    return [context.cast(builder, value, own, kind) for value, own in zip(values, kinds, strict=True)][::-1]


def _check_map(tensor_map, kinds=(TensorMapType,)):
    if type(tensor_map) not in kinds:
        needed = " or a ".join(kind.__name__.removesuffix("Type") for kind in kinds)
        raise TypingError(f"this copy needs a {needed}: make one on the host, and pass it to the kernel")


def _check_place(place, count, what="box"):
    if not isinstance(place, types.BaseTuple) or len(place) != count:
        raise TypingError(f"the place of a {what} is a tuple of {count} whole numbers here")


def _operands(first, count):
    """Return the text of `count` operands in braces, as PTX writes coordinates."""
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"


def _load(of_pixels=False, multicast=False):
    """Return the definition of a load of a box or of pixels, to one block or to several."""

    def definition(typing, *kinds):
        tile, index, tensor_map, place, *offset = kinds[: 4 + of_pixels]
        barriers, i, *ctas = kinds[4 + of_pixels :]
        _check_map(tensor_map, (PixelMapType if of_pixels else TensorMapType,))
        _check_place(place, tensor_map.axes, "first window" if of_pixels else "box")
        for pair in offset:
            _check_place(pair, 2, "pixel in its window")
        index_types(tile, index)
        index_types(barriers, i)
        axes, count = tensor_map.axes, 3 + tensor_map.axes  # operands before the offset

        def operands(context, builder, signature, arguments):
            target = shared_address(context, builder, tile, index, *arguments[:2])
            barrier = shared_address(context, builder, barriers, i, *arguments[4 + of_pixels : 6 + of_pixels])
            values = [target, arguments[2], barrier, *_coordinates(context, builder, place, arguments[3])]
            if of_pixels:
                values += _coordinates(context, builder, offset[0], arguments[4], types.uint16)
            if multicast:
                values.append(context.cast(builder, arguments[-1], ctas[0], types.uint16))
            return values

        mode, more = ("im2col", f", {_operands(count, 2)}") if of_pixels else ("tile", "")
        delivery, more = (".multicast::cluster", f"{more}, ${count + 2 * of_pixels}") if multicast else ("", more)
        text = (
            f"cp.async.bulk.tensor.{axes}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes{delivery} "
            f"[$0], [$1, {_operands(3, axes)}], [$2]{more};"
        )
        return types.void(*kinds), assembly_code(text, operands)

    return definition


intrinsic(tensor_copies.tma_load)(_load())
intrinsic(tensor_copies.tma_load_multicast)(_load(multicast=True))
intrinsic(tensor_copies.tma_load_pixels)(_load(of_pixels=True))
intrinsic(tensor_copies.tma_load_pixels_multicast)(_load(of_pixels=True, multicast=True))


@intrinsic(tensor_copies.tma_prefetch)
def _tma_prefetch(typing, tensor_map):
    _check_map(tensor_map, (TensorMapType, PixelMapType))
    code = assembly_code("prefetch.tensormap [$0];", lambda context, builder, signature, arguments: arguments)
    return types.void(tensor_map), code


def _store(map_type, mode, what="box"):
    """Return the definition of a store of a box or of pixels."""

    def definition(typing, tensor_map, place, tile, index):
        _check_map(tensor_map, (map_type,))
        _check_place(place, tensor_map.axes, what)
        index_types(tile, index)
        axes = tensor_map.axes

        def operands(context, builder, signature, arguments):
            coordinates = _coordinates(context, builder, place, arguments[1])
            return [arguments[0], shared_address(context, builder, tile, index, *arguments[2:4]), *coordinates]

        text = f"cp.async.bulk.tensor.{axes}d.global.shared::cta.{mode}.bulk_group [$0, {_operands(2, axes)}], [$1];"
        return types.void(tensor_map, place, tile, index), assembly_code(text, operands)

    return definition


intrinsic(tensor_copies.tma_store)(_store(TensorMapType, "tile"))
intrinsic(tensor_copies.tma_store_pixels)(_store(PixelMapType, "im2col_no_offs", "first window"))


@intrinsic(tensor_copies.tma_add)
def _tma_add(typing, array, index, tile, tile_index, count):
    number = literal_value(count, "how many numbers are added")
    if array.dtype != types.float32 or tile.dtype != types.float32:
        raise TypingError(f"float32 is added to float32 here, not {tile.dtype} to {array.dtype}")
    if number <= 0 or number % 4:
        raise TypingError(f"a multiple of 4 numbers is added, not {number}")
    index_types(array, index)
    index_types(tile, tile_index)

    def operands(context, builder, signature, arguments):
        target = builder.ptrtoint(element_pointer(context, builder, array, index, *arguments[:2]), I64)
        return [target, shared_address(context, builder, tile, tile_index, *arguments[2:4])]

    text = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], {4 * number};"
    return types.void(array, index, tile, tile_index, count), assembly_code(text, operands)


intrinsic(tensor_copies.tma_store_commit)(bare_instruction("cp.async.bulk.commit_group;"))
intrinsic(tensor_copies.tma_store_wait)(
    with_literal("cp.async.bulk.wait_group.read {};", "how many groups may be in flight")
)
