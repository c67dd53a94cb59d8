"""Values that a kernel captured, inspected by their types alone: none of their methods or attributes ever runs."""

import builtins
import math
import sys
from abc import ABCMeta
from dataclasses import dataclass
from enum import EnumType
from inspect import getattr_static
from types import BuiltinFunctionType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from labkit.simulator.host import DeviceArray, KernelName
from labkit.simulator.seam import types

_ancestors = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__
_TRUSTED_TYPES = (
    bool, int, float, complex, str, bytes, NoneType, EllipsisType, np.ndarray, np.ufunc, ModuleType, FunctionType,
    BuiltinFunctionType, type, EnumType, DeviceArray, KernelName,
    *(kind for kind in set(np.sctypeDict.values()) if kind is not np.str_),
)  # fmt: skip
_TRUSTED = frozenset(map(id, _TRUSTED_TYPES))  # a class may have a hash of its own
_PLAIN = {int: int.__int__, float: float.__float__, str: str.__str__}  # the plain value of a derived type


@dataclass(frozen=True)
class Device:
    """A function under `cuda.jit`, whatever class `cuda.jit` gave it, and its declared argument types."""

    py_func: FunctionType
    signatures: tuple[tuple, ...] = ()


@dataclass(frozen=True)
class Foreign:
    """A value that has no meaning in a kernel."""

    kind: str

    def __str__(self):
        return f"an object of type {self.kind}"


@dataclass(frozen=True)
class Named:
    """A namedtuple."""

    values: tuple
    fields: tuple[str, ...]

    def __str__(self):
        return str(self.values)


def trusted(value) -> Any:
    """Return a value of a type that the kernel language knows, made plain if its type is derived; else a Foreign."""
    if value is not None and value is sys.modules.get("numba.types"):  # once imported, it hands all on to this module
        return sys.modules.get("numba.core.types", value)
    kind = type(value)
    if id(kind) in _TRUSTED or kind is getattr(sys.modules.get("numba.cuda.extending"), "_Intrinsic", None):
        return value
    if _derives(kind, np.dtype) or _derives(kind, types.Type):
        return value
    if _derives(kind, np.ndarray):
        return np.ndarray.view(value, np.ndarray)
    if _derives(kind, tuple):
        values = tuple(trusted(item) for item in tuple.__iter__(value))
        fields = fields_of(kind)
        return Named(values, fields) if fields and len(fields) == len(values) else values
    for base, plain in _PLAIN.items():
        if _derives(kind, base):
            return plain(value)
    plain_class = type(kind) in (type, ABCMeta) and not _derives(kind, type)  # one whose own class runs no code
    function = getattr_static(value, "py_func", None) if plain_class else None
    if type(function) is not FunctionType:
        return Foreign(_name(kind))
    return Device(function, _types_in(getattr_static(value, "signatures", ())))


def _types_in(signatures):
    """Return the signatures, if that is what they are."""
    plain = type(signatures) is tuple and all(type(signature) is tuple for signature in signatures)
    return signatures if plain and all(_derives(type(t), types.Type) for s in signatures for t in s) else ()


def _derives(kind, base) -> bool:
    """Return Python's `issubclass`, without running code of the class."""
    return any(ancestor is base for ancestor in _ancestors(kind))


def fields_of(value) -> tuple[str, ...] | None:
    """Return the field names of a namedtuple's class; None for anything else."""
    fields = vars(value).get("_fields") if type(value) is type and _derives(value, tuple) else None
    return fields if type(fields) is tuple and all(type(name) is str for name in fields) else None


def member_of(family, name: str):
    """Return the value of a member of an Enum's class; None for anything else."""
    if type(family) is not EnumType:
        return None
    member = vars(family).get("_member_map_", {}).get(name)
    return trusted(getattr_static(member, "_value_", None))


def exception_name(value) -> str | None:
    """Return the name of an exception's class, or of the built-in class that it derives from; None for others."""
    if type(value) is not type or not _derives(value, Exception):
        return None
    return next(_name(kind) for kind in _ancestors(value) if getattr(builtins, _name(kind), None) is kind)


def is_same(first, second) -> bool:
    """Return whether two trusted values are identical or equal."""
    if first is second:
        return True
    return type(first) is type(second) and not isinstance(first, np.ndarray) and first == second


def in_words(value) -> str:
    """Return a trusted value for a sentence; a number of very many digits by their count."""
    if type(value) is int and abs(value) >= 1 << 256:
        return f"a number of about {round(value.bit_length() * math.log10(2)):,} digits"
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else str(value)
