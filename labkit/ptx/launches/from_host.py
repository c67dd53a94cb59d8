"""Launches of kernels that take tensor maps, or begin early, of which numba's launches know nothing."""

import ctypes

from numba.cuda.cudadrv.driver import binding, driver

from labkit.ptx.tensor_copies.on_gpu import TensorMapType, encoded


def _early():
    attribute = binding.CUlaunchAttribute()
    attribute.id = binding.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    return attribute


EARLY = _early()


def takes_maps(kernel) -> bool:
    """Whether a compiled kernel of numba's has a tensor map among its arguments."""
    return any(isinstance(kind, TensorMapType) for kind in kernel.argument_types)


def launch(kernel, early, arguments, grid, block, stream=0, shared_bytes=0):
    """As numba's `_Kernel.launch`, but a tensor map goes to the kernel by value, 128 bytes, and the launch may begin
    before the one before it has ended."""
    prepared, write_back = [], []
    for kind, value in zip(kernel.argument_types, arguments, strict=True):
        if isinstance(kind, TensorMapType):
            prepared.append(encoded(value))
        else:
            kernel._prepare_args(kind, value, stream, write_back, prepared)
    prepared = [_in_memory(value) for value in prepared]
    places = (ctypes.c_void_p * len(prepared))(*map(_address, prepared))
    function = binding.CUfunction(int(kernel._codelibrary.get_cufunc().handle))
    handle = binding.CUstream(int(getattr(stream, "handle", stream)))
    config = binding.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes, config.hStream = shared_bytes, handle
    config.attrs, config.numAttrs = [EARLY] * early, int(early)
    driver.cuLaunchKernelEx(config, function, ctypes.addressof(places), 0)
    for copy in write_back:
        copy()


def _in_memory(value):
    """What numba prepared, as an object that has an address; plain numbers are as wide as a pointer."""
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    return ctypes.c_int64(value) if isinstance(value, int) else value


def _address(value) -> int:
    return int(value.getPtr()) if hasattr(value, "getPtr") else ctypes.addressof(value)
