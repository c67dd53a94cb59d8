"""Kernels of labkit under numba_cuda_mlir's compiler; imported only where it and numba-cuda are installed."""

import dis
import os
import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from types import ModuleType

from numba_cuda_mlir import cuda, extending, models, tools, types
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir._mlir.dialects import llvm, memref
from numba_cuda_mlir.lowering_utilities.type_conversions import to_mlir_type
from numba_cuda_mlir.numba_cuda.np.numpy_support import from_dtype
from numba_cuda_mlir.numba_cuda.typing import signature
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate

from labkit import cuda as labkit_cuda
from labkit import ptx
from labkit.cuda.compiling import types as numba_types
from labkit.ptx.intrinsics import result_type
from labkit.rebinding import names_used_by, rebuild
from labkit.simulator.instruction import instruction_of

H100 = (9, 0)
LONGEST_REASON = 100  # characters

os.environ["NUMBA_CUDA_MLIR_ICE_FULL_TB"] = "1"  # errors within the compiler keep their messages
tools._cached_cc = H100  # else it asks the driver for the GPU when it compiles a device function


def reason_to_refuse(kernel, arguments) -> str:
    """Compile a kernel for an H100 and these arguments; return "", or why that fails."""
    bounds = getattr(kernel, "options", {}).get("launch_bounds")
    return _reason_to_refuse(_bound(kernel.py_func), tuple(map(_kind, arguments)), bounds)


def reason_to_refuse_line(line: str) -> str:
    """Compile a kernel of one line, which calls numba_cuda_mlir's own functions; return "", or why that fails."""
    names = {"cuda": cuda, "types": types}
    exec(f"def kernel(x):\n    s = cuda.shared.array(32, cuda.int64)\n    {line}\n", names)
    return _reason_to_refuse(names["kernel"], (types.Array(types.float32, 1, "C"),))


def _reason_to_refuse(function, kinds, launch_bounds=None):
    settings = {"device": False, "abi": "numba", "cc": H100, "launch_bounds": launch_bounds}
    try:
        with redirect_stdout(StringIO()):  # it prints the whole program with an error
            cuda.compile(function, kinds, **settings)
    except Exception as error:  # of any kind: the compiler is what is tested
        return _reason(error)
    return ""


def instructions_of(kernel) -> list[str]:
    """Return the names of all of labkit's instructions in a kernel and the device functions that it calls."""
    found, seen, waiting = set(), set(), [kernel.py_func]
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        fields = {step.argval for step in dis.get_instructions(function) if step.opname in ("LOAD_ATTR", "LOAD_METHOD")}
        for value in names_used_by(function).values():
            values = value if isinstance(value, tuple) else [value]
            waiting += [each.py_func for each in values if hasattr(each, "py_func")]
            candidates = [getattr(value, field, None) for field in fields] if _is_of_ptx(value) else values
            found |= {each.__name__ for each in candidates if instruction_of(each)}
    return sorted(found)


def _is_of_ptx(value):
    return isinstance(value, ModuleType) and value.__name__.startswith(ptx.__name__)


def _bound(function):
    """Return a function with numba_cuda_mlir's `cuda`, and device functions of its, in place of ours."""
    changes = {}
    for name, value in names_used_by(function).items():
        if value is labkit_cuda:
            changes[name] = cuda
        elif isinstance(value, tuple):
            changes[name] = tuple(_device_function(each) if hasattr(each, "py_func") else each for each in value)
        elif hasattr(value, "py_func"):
            changes[name] = _device_function(value)
    return rebuild(function, changes)


@cache
def _device_function(kernel):
    return cuda.jit(device=True)(_bound(kernel.py_func))


def _reason(error):
    """Return the essence of an error: the name without code, or its first line, without numbers of places."""
    text = str(error)
    if missing := re.search(r"lowering call to .*\.(\w+)'>", text):
        return f"it has no code for {missing[1]}"
    line = re.search(r'error: (?:"[^"]*":\S+ )?(.*)', text) or re.search(r"(.*)", text)
    return re.sub(r"_\d+", "", line[1]).strip()[:LONGEST_REASON] if line else type(error).__name__


# --- types ----------------------------------------------------------------------------------------


class Map(types.Type):
    """A tensor map, whose value is its address."""

    def __init__(self, numba_type):
        self.numba_type = numba_type
        super().__init__(str(numba_type))


@models.register_model(Map)
class _MapModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, llvm.PointerType.get())


def _kind(argument):
    """Return numba_cuda_mlir's type of a kernel's argument."""
    if isinstance(argument, ptx.TensorMap | ptx.PixelMap):
        return Map(argument._numba_type_)
    if isinstance(argument, tuple):
        return types.BaseTuple.from_types(tuple(map(_kind, argument)), type(argument))
    if shape := getattr(argument, "shape", ()):
        return types.Array(from_dtype(argument.dtype), len(shape), "C")
    return from_dtype(argument.dtype) if hasattr(argument, "dtype") else types.int64


def _to_numba(kind):
    """Return numba-cuda's type for one of numba_cuda_mlir's."""
    if isinstance(kind, Map):
        return kind.numba_type
    if isinstance(kind, types.Literal):
        return numba_types.literal(kind.literal_value)
    if isinstance(kind, types.Array):
        return numba_types.Array(_to_numba(kind.dtype), kind.ndim, kind.layout)
    if isinstance(kind, types.BaseTuple):
        return numba_types.BaseTuple.from_types(tuple(map(_to_numba, kind.types)))
    if isinstance(kind, types.DType):
        return numba_types.DType(_to_numba(kind.dtype))
    if isinstance(kind, types.NumberClass):
        return numba_types.NumberClass(_to_numba(kind.instance_type))
    return getattr(numba_types, str(kind))


def _from_numba(kind):
    if isinstance(kind, numba_types.Array):
        return types.Array(_from_numba(kind.dtype), kind.ndim, kind.layout)
    if isinstance(kind, numba_types.BaseTuple):
        return types.BaseTuple.from_types(tuple(map(_from_numba, kind.types)))
    return getattr(types, str(kind))


# --- stand-ins for labkit's instructions ---------------------------------------------------------------


def _stand_in(function):
    """Give a function of `labkit.ptx` its types under numba_cuda_mlir, and code without effect."""

    class Typing(AbstractTemplate):
        key = function
        prefer_literal = True

        def generic(self, args, kws):
            return signature(_from_numba(result_type(function, map(_to_numba, args))), *args)

    extending.typing_registry.register(Typing)
    extending.typing_registry.register_global(function, types.Function(Typing))

    @extending.lower_builtin(function, types.VarArg(types.Any))
    def lower(builder, target, args, kwargs):
        kind = builder.get_numba_type(target.name)
        if isinstance(kind, types.BaseTuple):
            builder.store_var(target, tuple(map(_undefined, kind.types)))
        else:
            builder.store_var(target, None if isinstance(kind, types.NoneType) else _undefined(kind))


def _undefined(kind):
    kind = to_mlir_type(kind)
    if not isinstance(kind, ir.MemRefType):
        return llvm.mlir_undef(kind)
    some_shape = ir.MemRefType.get([4] * kind.rank, kind.element_type)
    return memref.cast(kind, memref.alloca(some_shape, [], []))


for _name in ptx.__all__:
    if instruction_of(getattr(ptx, _name)):
        _stand_in(getattr(ptx, _name))
extending.refresh_registries()
