"""What an expression is to the translator: the code that yields it, and its type."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from numba import types

MISSING = object()


@dataclass(frozen=True)
class Array:
    """The type of an array: its elements, its rank, the memory it lives in, and which array it is.

    `name` is that of the kernel's argument or of the allocation, whatever a function calls it: counters and
    races are told of arrays, not of names. `others` are those that a variable may hold instead, after other paths.
    `offset_bytes` is where the field begins in its record, if the elements are a field of an array's records.
    """

    dtype: types.Type
    ndim: int
    space: str
    name: str = ""
    others: tuple = ()
    offset_bytes: int = 0

    def same_form(self, other) -> bool:
        """Can a variable hold either of the two?"""
        return (self.dtype, self.ndim) == (other.dtype, other.ndim)

    def joined(self, other):
        """The type of what may be either of two arrays of one form."""
        arrays = tuple(dict.fromkeys([*self.each, *other.each]))
        return replace(arrays[0], others=arrays[1:])

    @property
    def each(self) -> tuple:
        """All the arrays that it may be."""
        return (replace(self, others=()), *self.others)


@dataclass(frozen=True)
class TensorMap:
    """The type of a tensor map: the array that it describes, its box, and which kind of `labkit.ptx` it is."""

    array: Array
    box: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Tuple:
    """The type of a tuple of values."""

    items: tuple

    def may_be(self, other) -> bool:
        """Can a variable hold either of the two, if it can hold either of each pair of values?"""
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


@dataclass(frozen=True)
class Member(NamedTuple):
    """The type of a member of an Enum, which holds its value."""

    family: str = ""

    def may_be(self, other) -> bool:
        return super().may_be(other) and self.family == other.family


@dataclass(frozen=True)
class Conflict:
    """The type of a variable after paths that gave it types which do not go together: it can only be set anew."""

    message: str


@dataclass(frozen=True)
class Fixed:
    """The type of what the compiler knows and lanes never hold: a function, a dtype, a number that must be a literal.

    `path` is its name in the kernel language, such as "cuda.atomic.add", where it has one.
    """

    value: Any
    path: str | None = None


GRID_GROUP = Fixed(None, "cuda.cg.this_grid()")


@dataclass(frozen=True)
class Value:
    """An expression: the code that yields it, its type, and its Python value where that is fixed."""

    code: str
    type: Any
    static: Any = MISSING


def items_of(value) -> list:
    """The values of a tuple."""
    statics = value.static if value.static is not MISSING else [MISSING] * len(value.type.items)
    return [
        Value(f"{value.code}[{i}]", kind, static) for i, (kind, static) in enumerate(zip(value.type.items, statics))
    ]


def is_known(literal) -> bool:
    """Is all of a literal known?"""
    return all(map(is_known, literal)) if isinstance(literal, tuple) else literal is not MISSING


def is_tuple(kind) -> bool:
    """Is it what Python calls a tuple?"""
    return type(kind) in (Tuple, NamedTuple)


def form_of(kind):
    """What one variable of the translated code can hold in some lanes while others hold a value of this type."""
    if isinstance(kind, Tuple):
        return tuple(form_of(item) for item in kind.items)
    return Array if isinstance(kind, Array) else types.Type


def common_type(kinds):
    """The type that values of these types have in common, as numba sees it, or None: arrays of one form are alike."""
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
    """How many values a tuple holds, those of the tuples in it counted; 1 for anything else."""
    return sum(count_entries(item) for item in kind.items) if isinstance(kind, Tuple) else 1


def example_element(name, array) -> str:
    """How to write one element of the array."""
    return f"{name}[{('()', 'i', 'row, col', 'z, row, col')[array.ndim] if array.ndim < 4 else '...'}]"


def describe(kind) -> str:
    """A type in a learner's words."""
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
    if isinstance(kind, Tuple):
        return f"a tuple of {len(kind.items)} values"
    if kind == GRID_GROUP:
        return "the group of all threads of the grid"
    if isinstance(kind, Fixed):
        return "a function" if kind.path or callable(kind.value) else "a type"
    if kind is str:
        return "text"
    if kind is types.none:
        return "None"
    return str(kind)
