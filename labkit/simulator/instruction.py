"""Instructions that a module above the simulator adds to the kernel language.

A function with an `Instruction` attribute is one: a kernel may call it under any name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from labkit.simulator.family import Family
from labkit.simulator.operands import check_argument_count
from labkit.simulator.seam import types
from labkit.simulator.values import Value

ATTRIBUTE = "on_lanes"  # the attribute of a function that holds its instruction


@dataclass(frozen=True)
class Instruction:
    """The effect of an instruction on lanes."""

    meaning: Any  # its `translate(translator, node)` writes the code that lanes run for a call, and returns its Value
    waits: bool = False  # a warp may have to wait there for others: that code yields as long as it does
    family: Family | None = None  # that a program which calls it uses


def instruction_of(value) -> Instruction | None:
    """Return a function's instruction; None for anything else. No code of the value runs."""
    found = vars(value).get(ATTRIBUTE) if type(value) is FunctionType else None
    return found if type(found) is Instruction else None


@dataclass(frozen=True)
class Plain:
    """An instruction without operands: lanes run `run(w, mask)`."""

    run: Callable

    def translate(self, translator, node):
        check_argument_count(translator, node, 0)
        translator.emit(f"{translator.constant(self.run)}(w, {translator.mask})")
        return Value("None", types.none)
