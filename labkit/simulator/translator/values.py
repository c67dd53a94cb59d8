"""What an expression is to the translator: the code that yields it, and its type."""

from dataclasses import dataclass
from typing import Any

from numba import types

MISSING = object()


@dataclass(frozen=True)
class Array:
    """The type of an array: its elements, its rank, the memory it lives in, and which array it is.

    `name` is that of the kernel's argument or of the allocation, whatever a function calls it: counters and
    races are told of arrays, not of names.
    """

    dtype: types.Type
    ndim: int
    space: str
    name: str = ""


@dataclass(frozen=True)
class Tuple:
    """The type of a tuple of values."""

    items: tuple


@dataclass(frozen=True)
class Value:
    """An expression: the code that yields it, its type, and its Python value where that is fixed."""

    code: str
    type: Any
    static: Any = MISSING


def element_of(name, array) -> str:
    """How to write one element of the array."""
    return f"{name}[{('i', 'row, col', 'z, row, col')[array.ndim - 1] if array.ndim < 4 else '...'}]"


def describe(kind) -> str:
    """A type in a learner's words."""
    if isinstance(kind, Array):
        return f"an array of {kind.dtype}"
    if isinstance(kind, Tuple):
        return f"a tuple of {len(kind.items)} values"
    if kind is str:
        return "text"
    if kind is types.none:
        return "nothing"
    return str(kind)
