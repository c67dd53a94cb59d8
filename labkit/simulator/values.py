"""Expressions in the translator: the code that computes each, and its type."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from labkit.simulator.seam import types

MISSING = object()  # in place of a value that is not known at compile time


@dataclass(frozen=True)
class Array:
    """The type of an array: its elements, its rank, its memory space, and which array it is."""

    dtype: types.Type
    ndim: int
    space: str  # "global", "shared", "local" or "constant"
    name: str = ""  # of the kernel's argument or the allocation, whatever a device function calls it
    others: tuple = ()  # arrays that a variable may hold instead, after other paths
    offset_bytes: int = 0  # of the field in its record, if the elements are a field of an array's records

    def same_form(self, other) -> bool:
        """Return whether a variable can hold either of the two."""
        return (self.dtype, self.ndim) == (other.dtype, other.ndim)

    def joined(self, other):
        """Return the type of a value that is either of two arrays of one form."""
        arrays = tuple(dict.fromkeys([*self.each, *other.each]))
        return replace(arrays[0], others=arrays[1:])

    @property
    def each(self) -> tuple:
        """All the arrays that it may be."""
        return (replace(self, others=()), *self.others)


@dataclass(frozen=True)
class TensorMap:
    """The type of a tensor map: the array that it describes, its box, and its class in `labkit.ptx`."""

    array: Array
    box: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Tuple:
    """The type of a tuple of values."""

    items: tuple

    def may_be(self, other) -> bool:
        """Return whether a variable can hold either of the two, if it can hold either of each pair of values."""
        return type(self) is type(other) and len(self.items) == len(other.items)


@dataclass(frozen=True)
class NamedTuple(Tuple):
    """The type of a tuple whose values have names."""

    fields: tuple = ()

    def may_be(self, other) -> bool:
        return super().may_be(other) and self.fields == other.fields


class Vector(Tuple):
    """The type of a vector, such as `cuda.float32x4`."""

    def may_be(self, other) -> bool:
        return self == other


class Record(Tuple):
    """The type of one record of a structured array: the array's type, then those of the indices."""


class Range(Tuple):
    """The type of a `range` that is kept in a name: its first number, its end and its step."""


class Maybe(Tuple):
    """The type of a number that is None in some lanes: whether it is one, and the number; numba's optional value."""


@dataclass(frozen=True)
class Member(NamedTuple):
    """The type of a member of an Enum, which holds its value."""

    family: str = ""

    def may_be(self, other) -> bool:
        return super().may_be(other) and self.family == other.family


@dataclass(frozen=True)
class Conflict:
    """The type of a variable after paths whose types do not unify: it can only be assigned again."""

    message: str


@dataclass(frozen=True)
class Fixed:
    """The type of a value that the compiler knows and lanes never hold: a function, a dtype, a literal.

    `path` is its name in the kernel language, such as "cuda.atomic.add", where it has one.
    """

    value: Any
    path: str | None = None


GRID_GROUP = Fixed(None, "cuda.cg.this_grid()")


@dataclass(frozen=True)
class Value:
    """An expression: the code that computes it, its type, and its Python value where that is fixed."""

    code: str
    type: Any
    static: Any = MISSING


def items_of(value) -> list:
    """Return the values of a tuple."""
    statics = value.static if value.static is not MISSING else [MISSING] * len(value.type.items)
    return [
        Value(f"{value.code}[{i}]", kind, static) for i, (kind, static) in enumerate(zip(value.type.items, statics))
    ]


def is_known(literal) -> bool:
    """Return whether all of a literal is known."""
    return all(map(is_known, literal)) if isinstance(literal, tuple) else literal is not MISSING


def is_tuple(kind) -> bool:
    """Return whether it is the type of a Python tuple."""
    return type(kind) in (Tuple, NamedTuple)


def form_of(kind):
    """Return the form of a type: one variable of the translated code holds values of one form."""
    if isinstance(kind, Tuple):
        return tuple(form_of(item) for item in kind.items)
    return Array if isinstance(kind, Array) else types.Type


def common_type(kinds):
    """Return the type that values of these types have in common for numba, or None; arrays of one form share one."""
    return reduce(_common, kinds) if kinds else None


def _common(first, second):
    if first == second:
        return first
    if isinstance(first, Array) and isinstance(second, Array) and first.same_form(second):
        return first.joined(second)
    if isinstance(first, Tuple) and first.may_be(second):
        items = tuple(map(_common, first.items, second.items))
        return None if None in items else replace(first, items=items)
    return None


def count_entries(kind) -> int:
    """Return the number of values in a tuple, including those of nested tuples; 1 for anything else."""
    return sum(count_entries(item) for item in kind.items) if isinstance(kind, Tuple) else 1


def example_element(name, array) -> str:
    """Return how to write one element of the array."""
    return f"{name}[{('()', 'i', 'row, col', 'z, row, col')[array.ndim] if array.ndim < 4 else '...'}]"


def describe(kind) -> str:
    """Return a type in a learner's words."""
    if isinstance(kind, Array):
        return f"an array of {kind.dtype}"
    if isinstance(kind, TensorMap):
        return "a tensor map"
    if isinstance(kind, Vector):
        return f"a vector of {len(kind.items)} numbers"
    if isinstance(kind, Record):
        return "a record"
    if isinstance(kind, Range):
        return "a range"
    if isinstance(kind, Member):
        return f"a member of {kind.family}"
    if isinstance(kind, Maybe):
        return f"{describe(kind.items[1])} or None"
    if isinstance(kind, Tuple):
        return f"a tuple of {len(kind.items)} values"
    if kind == GRID_GROUP:
        return "the group of all threads of the grid"
    if isinstance(kind, Fixed):
        return "None" if kind == Fixed(None) else "a function" if kind.path or callable(kind.value) else "a type"
    if kind is str:
        return "text"
    if kind is types.none:
        return "None"
    return str(kind)
