"""Tensor maps as arguments of a compiled kernel: their numba type and their encoding."""

from contextlib import contextmanager
from threading import local

from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import core_models, register_model

from labkit.ptx.intrinsics import I64, constant, emit_assembly
from labkit.simulator.tensor_maps import WindowedImages


class TensorMapType(types.Type):
    """numba's type of a tensor map; in a kernel its value is the map's address."""

    def __init__(self, axes):
        self.axes = axes
        super().__init__(f"{type(self).__name__.removesuffix('Type')}({axes} axes)")


class PixelMapType(TensorMapType):
    """numba's type of an im2col map, which copies the pixels of windows (`WindowedImages`)."""

    def __init__(self):
        super().__init__(4)


BY_VALUE = ir.VectorType(I64, 16)  # 128 bytes, with the alignment that TMA needs and a struct lacks


class _Compiling(local):
    """State of a compiling thread: one may compile a device function while another compiles a kernel."""

    device_function = False


_compiling = _Compiling()


@register_model(PixelMapType)
@register_model(TensorMapType)
class _TensorMapModel(core_models.PrimitiveModel):
    """Model by which a kernel gets the map itself as a parameter, and a device function its address.

    A parameter's address is taken by its name in PTX, which LLVM makes of the kernel's name and a number.
    """

    def __init__(self, manager, kind):
        super().__init__(manager, kind, I64)

    def get_argument_type(self):
        return BY_VALUE

    def as_argument(self, builder, value):  # of a device function: the address goes first
        return builder.insert_element(BY_VALUE(ir.Undefined), value, constant(0))

    def from_argument(self, builder, value):
        if _compiling.device_function:
            return builder.extract_element(value, constant(0))
        number = builder.function.args.index(value) - 1  # numba's argument 0 is for a return value
        name = f"{builder.function.name}_param_{number}"
        text = f"{{\n.reg .b64 map;\nmov.b64 map, {name};\ncvta.param.u64 $0, map;\n}}"
        return emit_assembly(builder, text, I64, [], memory=False)


@contextmanager
def compiling_device_function():
    """Mark that this thread compiles a device function, not a kernel."""
    outside = _compiling.device_function
    _compiling.device_function = True
    try:
        yield
    finally:
        _compiling.device_function = outside


L2_PROMOTION = {32: "NONE", 64: "L2_64B", 128: "L2_256B"}  # least size that L2 fetches
ELEMENTS = {1: "UINT8", 2: "UINT16", 4: "UINT32"}


def encode_map(tensor_map):
    """Return a map as the driver's `CUtensorMap`. (CUDA driver API, "Tensor Map Object Managment".)"""
    from cuda.bindings import driver

    array = tensor_map.array
    if not cuda.is_cuda_array(array):
        raise TypeError("a tensor map describes memory of the GPU here: copy the array there with cuda.to_device")
    begin = array.address if hasattr(array, "address") else array.__cuda_array_interface__["data"][0]
    elements = "TFLOAT32" if tensor_map.to_tf32 else ELEMENTS[array.dtype.itemsize]
    shape, strides = array.shape, array.strides
    if isinstance(tensor_map, WindowedImages):
        encode = driver.cuTensorMapEncodeIm2col
        steps, (pixels, channels) = (1, *tensor_map.steps, 1), tensor_map.box
        box = *(list(reversed(corner)) for corner in tensor_map.corners), channels, pixels
    else:
        encode = driver.cuTensorMapEncodeTiled
        steps, box = (1,) * len(shape), ([driver.cuuint32_t(n) for n in reversed(tensor_map.box)],)
    status, encoded = encode(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{elements}"),
        len(shape),
        begin,
        [driver.cuuint64_t(n) for n in reversed(shape)],
        [driver.cuuint64_t(n) for n in reversed(strides[:-1])],
        *box,
        [driver.cuuint32_t(n) for n in reversed(steps)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{tensor_map.row_bytes}B"),
        getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{L2_PROMOTION[tensor_map.row_bytes]}"),
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver refuses a tensor map of {shape} {elements}: {status.name}")
    return encoded
