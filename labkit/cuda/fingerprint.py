"""What the machine code of a kernel depends on, as one digest: a compiled kernel on disk is found again by it.

It holds the bytecode of the kernel and of the device functions that it calls, the values of the names that they use,
the argument types, the options, the GPU's compute capability, and the versions of all that compiles. Names of files and
numbers of lines are not among them.
"""

import hashlib
import os
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from labkit import places
from labkit.rebinding import names_used_by

COMPILERS = (
    "numba-cuda numba llvmlite numpy cuda-core cuda-bindings nvidia-nvvm nvidia-nvjitlink nvidia-nvjitlink-cu12 "
    "nvidia-cuda-nvcc nvidia-cuda-nvcc-cu12 nvidia-cuda-nvrtc nvidia-cuda-nvrtc-cu12"
).split()
OURS = ("cuda", "formats", "parts", "ptx")  # folders with code that numba runs as it compiles
KNOWN = ("numpy", "math", "cmath", "operator", "builtins", "numba", "numba_cuda", "labkit.ptx", "labkit.cuda")
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


class UnknownValue(Exception):
    """A kernel uses a value of which nobody can say what the compiler makes of it."""


def fingerprint(function: FunctionType, argument_types: tuple, options: dict, capability: tuple[int, int]) -> str:
    """Return the digest of a kernel that is compiled for these types.

    Raise UnknownValue where a kernel depends on more than can be told.
    """
    digest = hashlib.sha256()
    seen: dict[int, int] = {}
    parts = [_compilers(), str(argument_types), str(sorted(options.items(), key=str)), str(capability)]
    for part in (*parts, *_describe(function, seen)):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _describe(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Yield texts that differ where the compiler could make something else of a value."""
    function = getattr(value, "py_func", value)
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(function, FunctionType):
        yield from _describe_function(function, getattr(value, "targetoptions", {}), seen)
    elif isinstance(value, CodeType):
        yield from _describe_code(value, seen)
    elif isinstance(value, tuple | list | frozenset):
        items = sorted(value, key=repr) if isinstance(value, frozenset) else value
        yield f"{type(value).__name__} {getattr(value, '_fields', '')} of {len(value)}"
        for item in items:
            yield from _describe(item, seen)
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype.descr} {value.shape} {value.strides} {value.tobytes().hex()}"
    elif isinstance(value, np.generic | np.dtype):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__.removeprefix('labkit.').removeprefix('numba.')}"  # ours becomes numba's `cuda`
    else:
        yield _describe_known(value)


def _describe_function(function, options, seen):
    if id(function) in seen:
        yield f"function {seen[id(function)]}"
        return
    seen[id(function)] = len(seen)
    yield f"function {sorted(options.items(), key=str)} {function.__defaults__!r}"
    yield from _describe_code(function.__code__, seen, docstring=function.__doc__)
    for name, value in sorted(names_used_by(function).items()):
        yield f"name {name}"
        yield from _describe(value, seen)
        if isinstance(value, ModuleType) and not _is_known(value.__name__):
            for attribute in sorted(_names_in(function.__code__) & vars(value).keys()):  # a set differs in its order
                yield f"attribute {attribute}"
                yield from _describe(vars(value)[attribute], seen)


def _describe_code(code, seen, docstring=None):
    yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_argcount}"
    has_docstring = docstring is not None and code.co_consts[:1] == (docstring,)
    for constant in code.co_consts[has_docstring:]:
        yield from _describe(constant, seen)


def _describe_known(value):
    """Describe a type, an instruction or a function of a package whose version the digest holds."""
    from numba.cuda import types

    if isinstance(value, types.Type):
        return f"type {value}"
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None) or repr(type(value))
    is_function = isinstance(value, type | BuiltinFunctionType | np.ufunc) or hasattr(value, "_defn")
    module = getattr(getattr(value, "_defn", value), "__module__", module)
    if isinstance(value, np.ufunc):
        return f"ufunc {value.__name__}"
    if is_function and isinstance(module, str) and _is_known(module):
        return f"{module}.{getattr(getattr(value, '_defn', None), '__qualname__', name)}"
    raise UnknownValue(f"{value!r} of {type(value).__name__}")


def _is_known(module):
    return any(module == name or module.startswith(f"{name}.") for name in KNOWN)


def _names_in(code):
    """Return the names that code uses, with those of the functions inside it."""
    inner = (_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names}.union(*inner)


@cache
def _compilers() -> str:
    """Return the versions of what compiles, a digest of our own part in it, and numba's settings."""
    versions = [_version(name) for name in COMPILERS]
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    digest = hashlib.sha256()
    for folder in OURS:
        for path in sorted((places.PACKAGE / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return f"{platform.python_version()} {versions} {settings} {digest.hexdigest()}"


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None
