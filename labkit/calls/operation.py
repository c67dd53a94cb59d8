"""What an operation declares: its operands, what it refuses, its results, and what it launches.

An `Operation` is a call without its arrays: two calls with equal operations, on arrays that lie alike, have one plan.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from labkit.arrays.workspace import Workspace
from labkit.ladder import Launch


class Result(NamedTuple):
    """A new array that a call gives back.

    Attributes
    ----------
    like
        The name of the operand whose kind it has.
    shape
        Its shape.
    type_name
        What it holds, as in "float32" or "bfloat16"; None for what that operand holds.
    axes
        The order of its axes in memory, that of the largest stride first; None for C order.
    """

    like: str
    shape: tuple[int, ...]
    type_name: str | None = None
    axes: tuple[int, ...] | None = None


class Operation(ABC):
    """A call without its arrays: a subclass is a frozen dataclass of options, which it checks when it is made.

    Methods get arrays by their names, those that are there, in the order of `arrays`.
    """

    arrays: ClassVar[tuple[str, ...]]  # their names, in the order in which a plan takes those that are given
    outputs: ClassVar[tuple[str, ...]]  # those that a call gives back, and makes if they are missing
    in_place: ClassVar[Mapping[str, str]] = {}  # for an output the operand in whose very place it may be written

    @property
    @abstractmethod
    def needed(self) -> tuple[str, ...]:
        """The names of arrays that must be there."""

    @property
    def written(self) -> tuple[str, ...]:
        """The names of arrays that are written; the outputs, if nothing else is said."""
        return self.outputs

    @property
    def read(self) -> tuple[str, ...]:
        """The names of written arrays whose values count before, too."""
        return ()

    @property
    def varies(self) -> str:
        """Why each of its calls is another one, and what to do, in a sentence; "" where its plan is worth keeping."""
        return ""

    @abstractmethod
    def declared(self, given: Mapping[str, object]) -> "Operation":
        """The same with the format of the arrays, as their types may tell it: views of memory do not."""

    @abstractmethod
    def check(self, given: Mapping[str, object]) -> None:
        """Raises TypeError or ValueError, in a sentence, where arrays do not fit; outputs may be missing."""

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        """The array that is made for a missing output."""
        raise NotImplementedError

    @abstractmethod
    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        """What is launched for arrays of the device that fit, all outputs among them."""


def calls(operation: type[Operation]) -> Callable:
    """Marks a function as the call of an operation, whose parameters are the operation's arrays and options."""

    def mark(function):
        function.operation = operation
        return function

    return mark
