"""Operations: each declares its operands, checks, results and launches.

An `Operation` is a call without its arrays. Calls with equal operations, on arrays of equal layouts, share one plan.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from labkit.arrays.workspace import Workspace
from labkit.ladder import Launch


class Result(NamedTuple):
    """A new array that a call returns.

    Attributes
    ----------
    like
        Name of the operand whose package (NumPy, torch, CuPy ...) and device the array has.
    shape
        Shape of the array.
    type_name
        Element type, such as "float32" or "bfloat16"; None for the type of `like`.
    axes
        Order of the axes in memory, from the largest stride to the smallest; None for C order.
    """

    like: str
    shape: tuple[int, ...]
    type_name: str | None = None
    axes: tuple[int, ...] | None = None


class Operation(ABC):
    """A call without its arrays: a subclass is a frozen dataclass of options, and its constructor checks them.

    Methods get `operands`: the present arrays by their names, in the order of `arrays`.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the subclass
    arrays: ClassVar[tuple[str, ...]]  # names of all inputs and outputs, in the order in which a plan accepts them
    outputs: ClassVar[tuple[str, ...]]  # those that a call returns, and makes if they are missing
    required: ClassVar[tuple[str, ...]]
    read: ClassVar[tuple[str, ...]] = ()  # written arrays whose old values are read
    in_place: ClassVar[Mapping[str, str]] = {}  # for an output, the operand that it may overwrite
    varies: ClassVar[str] = ""  # why no two calls are equal, and what to do; "" if plans are worth caching

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the written arrays; by default the outputs."""
        return self.outputs

    @abstractmethod
    def with_format(self, operands: Mapping[str, object]) -> "Operation":
        """Return the operation with its number format, read from the arrays' types before they become views of bits."""

    @abstractmethod
    def check(self, operands: Mapping[str, object]) -> None:
        """Raise TypeError or ValueError, with one sentence, if arrays do not fit; outputs may be missing."""

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        """Describe the array to make for a missing output."""
        raise NotImplementedError

    def new_results(self, operands: Mapping[str, object]) -> dict[str, Result]:
        """Describe the arrays to make for all missing outputs."""
        return {name: self.result(name, operands) for name in self.outputs if name not in operands}

    def select(self, arrays: Mapping[str, object]) -> dict[str, Any]:
        """Return the arrays that are not None, in order; raise TypeError if a required one is missing."""
        operands = {name: arrays[name] for name in self.arrays if arrays.get(name) is not None}
        for name in self.required:
            if name not in operands:
                raise TypeError(f"{name} is None: give an array")
        return operands

    @abstractmethod
    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        """Return the launches for valid device arrays, which include all outputs."""


def call_of(operation: type[Operation]) -> Callable:
    """Give a public function the attribute `operation`; its parameters are the operation's arrays and options."""

    def mark(function):
        function.operation = operation
        return function

    return mark


def bind_call(call: Callable, arrays: Sequence, options: Mapping, aim: str) -> tuple[Operation, dict[str, Any], Any]:
    """Return the operation of a public function's call, its arrays by their names, and its stream.

    Raise TypeError if `call` is not the call of an operation; `aim` is a participle for the message, such as "planned".
    """
    if not hasattr(call, "operation"):
        raise TypeError(f"{call!r} is not {aim}: give a call of an operation, such as norm.layer_norm")
    bound = signature(call).bind(*arrays, **options)
    bound.apply_defaults()
    arguments, kind = bound.arguments, call.operation
    stream = arguments.pop("stream")
    operands = {name: X for name in kind.arrays if (X := arguments.pop(name)) is not None}
    return kind(**arguments), operands, stream
