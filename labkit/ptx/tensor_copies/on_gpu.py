"""The machine code of TMA copies, and tensor maps as arguments of a kernel."""

from contextlib import contextmanager
from threading import local

from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import core_models, register_model

from labkit.ptx import tensor_copies
from labkit.ptx.intrinsics import (
    I64,
    VOID,
    assembly,
    fixed,
    index_kinds,
    intrinsic,
    literal,
    plain,
    pointer,
    shared_address,
)  # fmt: skip


class TensorMapType(types.Type):
    """numba's type of a tensor map: in a kernel it is where the map lies in memory."""

    def __init__(self, axes):
        self.axes = axes
        super().__init__(f"{type(self).__name__.removesuffix('Type')}({axes} axes)")


class PixelMapType(TensorMapType):
    """The same of a map of pixels."""

    def __init__(self):
        super().__init__(4)


BY_VALUE = ir.VectorType(I64, 16)  # 128 bytes, aligned as the copy engine wants a map, which a struct would not be


class _Compiling(local):
    """What a thread compiles: while it is a device function, another thread may compile a kernel."""

    device_function = False


_compiling = _Compiling()


@register_model(PixelMapType)
@register_model(TensorMapType)
class _TensorMapModel(core_models.PrimitiveModel):
    """A kernel gets the map itself among its parameters, where the copy engine finds it soon; others get its address.

    Of a parameter the address is taken by the name that LLVM gives it in PTX, the kernel's and its number.
    """

    def __init__(self, manager, kind):
        super().__init__(manager, kind, I64)

    def get_argument_type(self):
        return BY_VALUE

    def as_argument(self, builder, value):  # of a device function: the address goes first
        return builder.insert_element(BY_VALUE(ir.Undefined), value, fixed(0))

    def from_argument(self, builder, value):
        if _compiling.device_function:
            return builder.extract_element(value, fixed(0))
        name = f"{builder.function.name}_param_{builder.function.args.index(value) - 1}"  # 0 is where numba returns to
        text = f"{{\n.reg .b64 map;\nmov.b64 map, {name};\ncvta.param.u64 $0, map;\n}}"
        return assembly(builder, text, I64, [], memory=False)


@contextmanager
def device_function():
    """While this thread compiles one, and not a kernel."""
    outside = _compiling.device_function
    _compiling.device_function = True
    try:
        yield
    finally:
        _compiling.device_function = outside


PROMOTED = {32: "NONE", 64: "L2_64B", 128: "L2_256B"}  # what L2 fetches at least: no more than short rows
ELEMENTS = {1: "UINT8", 2: "UINT16", 4: "UINT32"}


def encoded(tensor_map):
    """The 128 bytes of a map, as the driver's `CUtensorMap`. (CUDA driver API, "Tensor Map Object Managment".)"""
    from cuda.bindings import driver

    array = tensor_map.array
    if not cuda.is_cuda_array(array):
        raise TypeError("a tensor map describes memory of the GPU here: copy the array there with cuda.to_device")
    begin = array.address if hasattr(array, "address") else array.__cuda_array_interface__["data"][0]
    elements = "TFLOAT32" if tensor_map.to_tf32 else ELEMENTS[array.dtype.itemsize]
    shape, strides = array.shape, array.strides
    if isinstance(tensor_map, tensor_copies.PixelMap):
        encode = driver.cuTensorMapEncodeIm2col
        steps, (pixels, channels) = (1, *tensor_map.steps, 1), tensor_map.box
        box = *(list(reversed(corner)) for corner in tensor_map.corners), channels, pixels
    else:
        encode = driver.cuTensorMapEncodeTiled
        steps, box = (1,) * len(shape), ([driver.cuuint32_t(n) for n in reversed(tensor_map.box)],)
    status, made = encode(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{elements}"),
        len(shape),
        begin,
        [driver.cuuint64_t(n) for n in reversed(shape)],
        [driver.cuuint64_t(n) for n in reversed(strides[:-1])],
        *box,
        [driver.cuuint32_t(n) for n in reversed(steps)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{tensor_map.row_bytes}B"),
        getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{PROMOTED[tensor_map.row_bytes]}"),
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver refuses a tensor map of {shape} {elements}: {status.name}")
    return made


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
