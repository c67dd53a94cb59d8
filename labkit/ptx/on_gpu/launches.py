"""Launches of kernels that take tensor maps, which numba's launches do not pass."""

import ctypes

from numba.cuda.cudadrv.driver import binding, driver

from labkit.ptx.on_gpu.tensor_copies import TensorMapType, encoded


def takes_maps(kernel) -> bool:
    """Whether a compiled kernel of numba's has a tensor map among its arguments."""
    return any(isinstance(kind, TensorMapType) for kind in kernel.argument_types)


def launch(kernel, arguments, grid, block, stream=0, shared_bytes=0):
    """As numba's `_Kernel.launch`, but a tensor map goes to the kernel by value, 128 bytes."""
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
    driver.cuLaunchKernel(function, *grid, *block, shared_bytes, handle, ctypes.addressof(places), 0)
    for copy in write_back:
        copy()


def _in_memory(value):
    """What numba prepared, as an object that has an address; plain numbers are as wide as a pointer."""
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    return ctypes.c_int64(value) if isinstance(value, int) else value


def _address(value) -> int:
    return int(value.getPtr()) if hasattr(value, "getPtr") else ctypes.addressof(value)
