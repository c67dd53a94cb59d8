"""The modules of numba_cuda_mlir, numba-cuda's successor, on the simulator: numba's `cuda` under other names.

Where numba_cuda_mlir has more names than numba-cuda, those of the same meaning here are mapped. A program may import
the others, too; their use is refused.
"""

from functools import partial
from importlib import import_module
from inspect import isfunction, signature
from string import ascii_letters
from typing import Any

from labkit import cuda
from labkit.cuda.simulated import Kernel
from labkit.running import modules
from labkit.running.modules import absent, absent_names, module_with, simulated_cuda
from labkit.simulator import host, host_device, numba_types
from labkit.simulator.errors import LaunchError
from labkit.simulator.seam import package as numba
from labkit.simulator.seam import types

NAME = "numba_cuda_mlir"
VERSION = "0.6.0"  # the one whose names stand here
MEMORY_SPACES = "shared", "local", "const"
SUBMODULES = (*MEMORY_SPACES, "intrin", "libdevice", "fp16", "cudadrv", "vector", "tensor_map", "experimental")
NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
DRIVERS = "devices driver dummyarray error libs linkable_code mappings ndarray nvrtc nvvm runtime".split()
# Names of its `cuda` that the simulator lacks, besides those of numba's.
LACKED = """carray compile_cubin compile_for compile_mlir complex32 Dim3 dim3 farray float16x1 float16x2 float16x3
    float16x4 grid_group GridGroup half1 half2 half3 half4 prepare_shape_strides_dtype require_context
    resolve_cuda_array_interface_dtype vectorize""".split()
# Types that numba lacks, and functions of types.
LACKED_TYPES = """AggregateType alignas bf16 BFloat16Type byval_ptr ByValPointerType complex32 CUTensorMap
    CUTensorMapStorage CUTensorMapStorageType CUTensorMapType f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3
    f8E4M3B11FNUZ f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU Float4E2M1FNType Float6E2M3FNType
    Float6E3M2FNType Float8E3M4Type Float8E4M3B11FNUZType Float8E4M3FNType Float8E4M3FNUZType Float8E4M3Type
    Float8E5M2FNUZType Float8E5M2Type Float8E8M0FNUType FloatTF32Type get_numba_cuda_mlir_attributes
    grid_constant nvfp4 NVFP4Type ptr_to set_numba_cuda_mlir_attributes tf32""".split()


def _package(name):
    module = module_with(name, {field: absent(f"{name}.{field}") for field in ("carray", "farray")})
    vars(module)["__version__"] = VERSION
    return module


def _cuda(name):
    """Return `numba_cuda_mlir.cuda` with all of its names in it, since a kernel reads no others."""
    from labkit.running.mlir_intrinsics import INLINE_PTX  # which only programs of this package need

    module = simulated_cuda(name)
    eager = {*cuda.simulated_names()} - {"random", *vars(module)}
    vars(module).update(
        {field: cuda.simulated_name(field) for field in eager}
        | {field: absent(f"{name}.{field}") for field in (*modules.LACKED, *LACKED)}
        | {field: MODULES[f"{name}.{field}"](f"{name}.{field}") for field in SUBMODULES},
        runtime=absent_names(f"{name}.runtime"),
        types=_numbas(f"{name}.types"),
        jit=jit,
        guvectorize=partial(numba.guvectorize, target="cuda"),
        literal_unroll=numba.literal_unroll,
        bfloat16=numba_types.bfloat16,
        inline_ptx=INLINE_PTX,
        shared_array=host.KernelName("shared").array,
        local_array=host.KernelName("local").array,
        DeviceNDArray=host.DeviceArray,
        MemoryInfo=host_device.MemoryInfo,
        CudaSupportError=CudaSupportError,
        KernelRuntimeError=KernelRuntimeError,
        HAS_NUMBA=False,
        implementation="labkit's simulator",
        **dict.fromkeys(
            ("is_float16_supported", "is_bfloat16_supported", "is_fp8_supported", "is_supported_version"), _yes
        ),
    )
    vars(module)["__all__"] = sorted(field for field in (*vars(module), "random") if not field.startswith("_"))
    return module


def _yes():
    """Say that the modelled GPU has it."""
    return True


class CudaSupportError(ImportError):
    """The error of a missing driver, which no program meets here."""


class KernelRuntimeError(RuntimeError):
    """The error of an exception in a kernel, which no program meets here."""


class MlirKernel(Kernel):
    """A kernel whose clusters are given at the launch."""

    def configure(self, griddim, blockdim, stream=0, sharedmem=0, cluster=None):
        if cluster is None:
            return super().configure(griddim, blockdim, stream, sharedmem)
        along_x, *others = cluster if isinstance(cluster, tuple) else (cluster,)
        if any(n != 1 for n in others):
            raise LaunchError(f"clusters extend along x on labkit's simulator, not as {cluster}")
        in_clusters = Kernel(self.py_func, self.device, self.options | {"cluster": along_x}, self.signatures)
        return in_clusters.configure(griddim, blockdim, stream, sharedmem)


def jit(func_or_sig=None, device=False, annotations_as_signatures=True, **options):
    """Make a kernel or device function; types as annotations of all of its parameters declare a signature."""
    if isfunction(func_or_sig):
        return jit(None, device, annotations_as_signatures, **options)(func_or_sig)

    def decorate(function):
        annotations = tuple(parameter.annotation for parameter in signature(function).parameters.values())
        declares = annotations_as_signatures and annotations and all(isinstance(a, types.Type) for a in annotations)
        kernel: Any = cuda.jit(annotations if declares else func_or_sig, device, **options)(function)
        return MlirKernel(kernel.py_func, kernel.device, kernel.options, kernel.signatures)

    return decorate


def _types(name):
    """Return the module of types; `i8` has 8 bits there, and 8 bytes in numba."""
    from labkit.running.mlir_intrinsics import POINTER

    in_bits = {f"{long[0]}{long.strip(ascii_letters)}": getattr(types, long) for long in NUMBERS}
    lacked = {field: absent(f"{name}.{field}") for field in LACKED_TYPES}
    templates = import_module("numba.core.typing.templates")
    more = {"bfloat16": numba_types.bfloat16, "Signature": templates.Signature, "signature": templates.signature}
    more["ptr"] = POINTER
    return module_with(name, vars(types) | in_bits | lacked | more)


def _intrin(name):
    from labkit.running.mlir_intrinsics import INTRIN

    module = absent_names(name)
    vars(module).update(INTRIN, nanosleep=host.KernelName("nanosleep"))
    return module


def _vector(name):
    from labkit.running.mlir_intrinsics import VECTOR

    return module_with(name, VECTOR)


def _experimental(name):
    from labkit.running.mlir_intrinsics import INLINE_PTX

    module = absent_names(name)
    vars(module).update(inline_ptx=INLINE_PTX, intrin=_intrin(f"{NAME}.cuda.intrin"))
    return module


def _memory_space(name):
    space = name.rpartition(".")[2]
    return module_with(name, {field: getattr(host.KernelName(space), field) for field in host.FIELDS[space].split()})


def _vector_types(name):
    return module_with(name, vars(import_module(f"{NAME}.cuda")))


def _cudadrv(name):
    module = absent_names(name)
    vars(module)["devicearray"] = _numbas(f"{name}.devicearray")
    return module


def _numbas(name):
    """Return the module of numba's that has the same names."""
    return import_module(name.replace(NAME, "numba"))


MODULES = {
    NAME: _package,
    f"{NAME}.cuda": _cuda,
    f"{NAME}.types": _types,
    f"{NAME}.cuda.types": _types,
    f"{NAME}.cuda.intrin": _intrin,
    f"{NAME}.cuda.vector": _vector,
    f"{NAME}.cuda.vector_types": _vector_types,
    f"{NAME}.cuda.experimental": _experimental,
    **{f"{NAME}.cuda.{space}": _memory_space for space in MEMORY_SPACES},
    **{f"{NAME}.cuda.{module}": _numbas for module in ("libdevice", "fp16", "random", "cudadrv.devicearray")},
    f"{NAME}.cuda.cudadrv": _cudadrv,
    **{f"{NAME}.cuda.cudadrv.{module}": absent_names for module in DRIVERS},
    **{f"{NAME}.cuda.{module}": absent_names for module in ("libdevicefuncs", "tensor_map")},
    **{f"{NAME}.{module}": absent_names for module in ("compiler", "errors", "extending", "typing")},
}
