"""The machine code of TMA copies, and tensor maps as arguments of a kernel."""

from contextlib import contextmanager

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
    shared_address,
)  # fmt: skip


class TensorMapType(types.Type):
    """numba's type of a tensor map: in a kernel it is where the map lies in memory."""

    def __init__(self, axes):
        self.axes = axes
        super().__init__(f"TensorMap({axes} axes)")


BY_VALUE = ir.VectorType(I64, 16)  # 128 bytes, aligned as the copy engine wants a map, which a struct would not be
_in_device_function = []


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
        if _in_device_function:
            return builder.extract_element(value, fixed(0))
        name = f"{builder.function.name}_param_{builder.function.args.index(value) - 1}"  # 0 is where numba returns to
        text = f"{{\n.reg .b64 map;\nmov.b64 map, {name};\ncvta.param.u64 $0, map;\n}}"
        return assembly(builder, text, I64, [], memory=False)


@contextmanager
def device_function():
    """While one is compiled, and not a kernel."""
    _in_device_function.append(True)
    try:
        yield
    finally:
        _in_device_function.pop()


ELEMENTS = {1: "UINT8", 2: "UINT16", 4: "UINT32"}


def encoded(tensor_map):
    """The 128 bytes of a tensor map, as the driver's `CUtensorMap`. (CUDA driver API, cuTensorMapEncodeTiled.)"""
    from cuda.bindings import driver

    array = tensor_map.array
    if not cuda.is_cuda_array(array):
        raise TypeError("a tensor map describes memory of the GPU here: copy the array there with cuda.to_device")
    begin = array.address if hasattr(array, "address") else array.__cuda_array_interface__["data"][0]
    elements = "TFLOAT32" if tensor_map.to_tf32 else ELEMENTS[array.dtype.itemsize]
    shape, strides, box = array.shape, array.strides, tensor_map.box
    status, made = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{elements}"),
        len(shape),
        begin,
        [driver.cuuint64_t(n) for n in reversed(shape)],
        [driver.cuuint64_t(n) for n in reversed(strides[:-1])],
        [driver.cuuint32_t(n) for n in reversed(box)],
        [driver.cuuint32_t(1)] * len(shape),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver refuses a tensor map of {shape} {elements}: {status.name}")
    return made


def _place(context, builder, kinds, place):
    """The coordinates of a box as PTX wants them: the last axis first."""
    values = cgutils.unpack_tuple(builder, place)
    return [context.cast(builder, v, kind, types.int32) for v, kind in zip(values, kinds, strict=True)][::-1]


def _check_map(tensor_map):
    if not isinstance(tensor_map, TensorMapType):
        raise TypingError("this copy needs a TensorMap: make one on the host, and pass it to the kernel")


def _check(tensor_map, place):
    _check_map(tensor_map)
    if not isinstance(place, types.BaseTuple) or len(place) != tensor_map.axes:
        raise TypingError(f"the place of a box is a tuple of {tensor_map.axes} whole numbers here")


def _load(tile, index, tensor_map, place, barriers, i, ctas=None):
    _check(tensor_map, place)
    index_kinds(tile, index)
    index_kinds(barriers, i)
    axes = tensor_map.axes

    def code(context, builder, signature, arguments):
        to = shared_address(context, builder, tile, index, *arguments[:2])
        coordinates = _place(context, builder, place, arguments[3])
        barrier = shared_address(context, builder, barriers, i, *arguments[4:6])
        operands = [to, arguments[2], barrier, *coordinates]
        where = ", ".join(f"${3 + axis}" for axis in range(axes))
        multicast, mask = "", ""
        if ctas is not None:
            operands.append(context.cast(builder, arguments[6], ctas, types.uint16))
            multicast, mask = ".multicast::cluster", f", ${3 + axes}"
        text = (
            f"cp.async.bulk.tensor.{axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{multicast} "
            f"[$0], [$1, {{{where}}}], [$2]{mask};"
        )
        assembly(builder, text, VOID, operands)
        return context.get_dummy_value()

    extra = () if ctas is None else (ctas,)
    return types.void(tile, index, tensor_map, place, barriers, i, *extra), code


@intrinsic(tensor_copies.tma_load)
def _tma_load(typing, tile, index, tensor_map, place, barriers, i):
    return _load(tile, index, tensor_map, place, barriers, i)


@intrinsic(tensor_copies.tma_load_multicast)
def _tma_load_multicast(typing, tile, index, tensor_map, place, barriers, i, ctas):
    return _load(tile, index, tensor_map, place, barriers, i, ctas)


@intrinsic(tensor_copies.tma_prefetch)
def _tma_prefetch(typing, tensor_map):
    _check_map(tensor_map)

    def code(context, builder, signature, arguments):
        assembly(builder, "prefetch.tensormap [$0];", VOID, arguments)
        return context.get_dummy_value()

    return types.void(tensor_map), code


@intrinsic(tensor_copies.tma_store)
def _tma_store(typing, tensor_map, place, tile, index):
    _check(tensor_map, place)
    index_kinds(tile, index)
    axes = tensor_map.axes

    def code(context, builder, signature, arguments):
        coordinates = _place(context, builder, place, arguments[1])
        begin = shared_address(context, builder, tile, index, *arguments[2:4])
        where = ", ".join(f"${2 + axis}" for axis in range(axes))
        text = f"cp.async.bulk.tensor.{axes}d.global.shared::cta.tile.bulk_group [$0, {{{where}}}], [$1];"
        assembly(builder, text, VOID, [arguments[0], begin, *coordinates])
        return context.get_dummy_value()

    return types.void(tensor_map, place, tile, index), code


@intrinsic(tensor_copies.tma_store_wait)
def _tma_store_wait(typing, pending):
    groups = literal(pending, "how many groups may be under way")

    def code(context, builder, signature, arguments):
        assembly(builder, f"cp.async.bulk.wait_group.read {groups};", VOID, [])
        return context.get_dummy_value()

    return types.void(pending), code


intrinsic(tensor_copies.tma_store_commit)(plain("cp.async.bulk.commit_group;"))
