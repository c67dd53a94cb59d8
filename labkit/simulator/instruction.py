"""Instructions that a module above the simulator adds to the kernel language.

A function is one if it carries an `Instruction`: a kernel calls it under whatever name, and nothing else need know it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from numba import types

from labkit.simulator.family import Family
from labkit.simulator.operands import check_count
from labkit.simulator.values import Value

ATTRIBUTE = "on_lanes"  # the attribute of a function in which its instruction stands


@dataclass(frozen=True)
class Instruction:
    """What an instruction does to lanes.

    `meaning` has a method `translate(translator, node)`, which writes the code that lanes run for a call, and returns
    its Value. `waits` says whether a warp may have to wait there for others: that code yields as long as it does.
    A program that calls it uses its `family`, if it has one.
    """

    meaning: Any
    waits: bool = False
    family: Family | None = None


def instruction_of(value) -> Instruction | None:
    """The instruction that a function is; None for anything else. No code of the value runs."""
    found = vars(value).get(ATTRIBUTE) if type(value) is FunctionType else None
    return found if type(found) is Instruction else None


@dataclass(frozen=True)
class Plain:
    """An instruction without operands: `run(w, mask)` is what lanes run."""

    run: Callable

    def translate(self, translator, node):
        check_count(translator, node, 0)
        translator.emit(f"{translator.constant(self.run)}(w, {translator.mask})")
        return Value("None", types.none)
