"""Declarations by a family of instructions: what it needs of programs that use it, and its checks.

The simulator knows no family by name. A folder of instructions declares one `Family`, its instructions name it
(`labkit.simulator.instruction`), and a program has what its families need. Errors that a family's states and lane code
find are added to the launch's log.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np


class SharedState(ABC):
    """State that a family keeps per unit of a shared array's memory, for all blocks of a chunk.

    A class per kind of state. It is made with the number of units, and is told of threads' accesses, except atomics.
    """

    units_per_element = 1

    @abstractmethod
    def __init__(self, units: int): ...

    def of_elements(self, units_per_element: int) -> "SharedState":
        """Return the same memory, for an array whose elements are `units_per_element` units each."""
        same = copy(self)
        same.units_per_element = units_per_element
        return same

    def units(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return the first unit of each of the elements `flat`, then the second, and so on."""
        return [flat * self.units_per_element + i for i in range(self.units_per_element)]

    def note_read(self, w, site, array, mask, flat):  # noqa: B027 - most states are told of some accesses alone
        """Note that the lanes of `mask` read the elements `flat` of the array."""

    def note_write(self, w, site, array, mask, flat):  # noqa: B027 - most states are told of some accesses alone
        """Note that the lanes of `mask` have written the elements `flat` of the array."""


class LocalState(ABC):
    """State that a family keeps per element and lane of a thread's own array; a class per kind of state."""

    @abstractmethod
    def __init__(self, shape: tuple[int, int]): ...

    def note_access(self, w, site, array, offset, mask):  # noqa: B027 - most states are told of some accesses alone
        """Note that the lanes of `mask` read or write the elements at `offset` in the array's memory."""


@dataclass(frozen=True, eq=False)
class Family:
    """A family of instructions; each attribute is for the families that need it."""

    is_asynchronous: bool = False  # operations run while their threads continue: arrays keep what is in flight
    keeps_clocks: bool = False  # warps synchronise by other means than barriers of the block: each keeps a vector clock
    has_warpgroup_clocks: bool = False  # the tensor cores of each warpgroup keep a clock too
    keeps_events: bool = False  # warps do different things at a time: their actions and waits are kept as events
    shared_states: tuple[type[SharedState], ...] = ()  # classes of state that is kept of shared arrays
    local_states: tuple[type[LocalState], ...] = ()  # and of threads' own arrays
    notes: Callable[[], Any] = set  # makes the container of what the instructions note of a program at translation
    notes_copies: bool = False  # the notes are numbers of sites where an asynchronous copy writes
    cure_race: Callable[[Any, Any], str] | None = None  # of (race, notes): a sentence, or "" for a race of others
    cure_unwritten: Callable[[Any, Any, Any], str] | None = None  # of (launch, site of the read, notes): likewise
    check: Callable[[Any, Any], None] | None = None  # of (program, notes); raises KernelError where that is wrong
