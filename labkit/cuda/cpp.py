"""CUDA C++ versions of chosen steps: kernels/**/*.cu, compiled with NVRTC and launched like numba's kernels.

    tiled = labkit.cuda_cpp.kernel("gemm/fp32/s03_tiled")
    tiled[grid, block](A, B, C, M, N, K)

Compiling needs NVRTC (in the extras cu12 and cu13) and no GPU; launching needs a GPU.
"""

import ctypes
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from labkit.places import folder
from labkit.ptx import PixelMap, TensorMap


class CppError(RuntimeError):
    """A C++ kernel does not exist, does not compile or cannot run here."""


def names() -> list[str]:
    """Return the names of all C++ kernels, such as `gemm/fp32/s03_tiled`."""
    root = folder("kernels")
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.cu"))


def source_path(name: str) -> Path:
    """Return the path of a C++ kernel's source; raise CppError if there is none."""
    path = folder("kernels") / f"{name}.cu"
    if not path.is_file():
        raise CppError(f"there is no C++ kernel {name!r}; there is {', '.join(names())}")
    return path


@cache
def cubin(name: str, compute_capability: tuple[int, int]) -> bytes:
    """Return a C++ kernel's machine code for a compute capability, such as (9, 0); a CppError holds NVRTC's log."""
    from cuda.bindings import nvrtc

    path = source_path(name)
    program = _result_of(nvrtc.nvrtcCreateProgram(path.read_bytes(), path.name.encode(), 0, None, None))
    architecture = b"sm_%d%d" % compute_capability + b"a" * (compute_capability == (9, 0))  # "a": with wgmma
    options = [b"--gpu-architecture=" + architecture, b"--std=c++17"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytearray(_result_of(nvrtc.nvrtcGetProgramLogSize(program)))
        _result_of(nvrtc.nvrtcGetProgramLog(program, log))
        raise CppError(f"{path.name} does not compile:\n{log.decode().rstrip(chr(0)).strip()}")
    code = bytearray(_result_of(nvrtc.nvrtcGetCUBINSize(program)))
    _result_of(nvrtc.nvrtcGetCUBIN(program, code))
    _result_of(nvrtc.nvrtcDestroyProgram(program))
    return bytes(code)


@cache
def kernel(name: str) -> "CppKernel":
    """Return a C++ kernel by its name; its function is named like the file, without the number of the step."""
    source_path(name)
    return CppKernel(name)


class CppKernel:
    """A compiled C++ kernel, launched like numba's: `kernel[grid, block, stream, shared_bytes](*arguments)`.

    NumPy arrays are copied to the GPU and back; device arrays of numba and torch are used in place, and tensor maps
    pass by value, 128 bytes. Python's ints pass as `int`, its floats as `float`.
    """

    def __init__(self, name: str):
        self.name = name
        self.entry = name.rpartition("/")[2].partition("_")[2]

    def __getitem__(self, configuration):
        grid, block, stream, shared_bytes = (*configuration, *(0, 0)[len(configuration) - 2 :])

        def launch(*arguments):
            self._launch(_three_sizes(grid), _three_sizes(block), int(stream), shared_bytes, arguments)

        return launch

    def _launch(self, grid, block, stream, shared_bytes, arguments):
        function = self._function
        from numba.cuda.cudadrv.driver import binding, driver  # checks the status of every call

        limit = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuFuncSetAttribute(function, limit, shared_bytes)  # a kernel must opt in to more than 48 KB
        values, kinds, copies = [], [], []
        for argument in arguments:
            value, kind = _as_argument(argument, copies)
            values.append(value)
            kinds.append(kind)
        stream = binding.CUstream(stream)
        driver.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, (tuple(values), tuple(kinds)), 0)
        for array, on_device in copies:
            on_device.copy_to_host(array)

    @cached_property
    def _function(self):
        from labkit.machine import device

        if device.detect().kind != "gpu":
            raise CppError(f"{self.name} is CUDA C++ and needs a GPU; the same kernel in Python runs here too")
        from numba import cuda
        from numba.cuda.cudadrv.driver import driver

        cuda.current_context()
        code = cubin(self.name, tuple(cuda.get_current_device().compute_capability))
        return driver.cuModuleGetFunction(driver.cuModuleLoadData(code), self.entry.encode())


def _as_argument(argument, copies):
    """Return the value of one argument and its C type; append arrays that were copied to `copies`."""
    if isinstance(argument, TensorMap | PixelMap):
        from labkit.ptx.tensor_copies.map_types import encode_map

        return encode_map(argument), None  # a struct of the driver's
    if isinstance(argument, np.ndarray):
        from numba import cuda

        on_device = cuda.to_device(argument)
        copies.append((argument, on_device))
        argument = on_device
    if hasattr(argument, "__cuda_array_interface__"):
        return argument.__cuda_array_interface__["data"][0], ctypes.c_void_p
    if isinstance(argument, np.generic):
        return argument.item(), np.ctypeslib.as_ctypes_type(argument.dtype)
    if isinstance(argument, int):
        return argument, ctypes.c_int
    if isinstance(argument, float):
        return argument, ctypes.c_float
    raise CppError(f"a C++ kernel takes arrays and numbers, not a {type(argument).__name__}")


def _three_sizes(sizes):
    return (*((sizes,) if isinstance(sizes, int) else sizes), 1, 1)[:3]


def _result_of(returned):
    """Return the result of an NVRTC call, whose first value is its status."""
    status, *results = returned
    if int(status) != 0:
        raise CppError(f"NVRTC answered {status.name}")
    return results[0] if results else None
