"""What a family of instructions asks of the programs that use it, and the checks that it brings.

The simulator knows no family by name. A folder of instructions declares one `Family`, its instructions name it
(`labkit.simulator.instruction`), and a program has what its families ask for. What a family's states and its code on
lanes find wrong, they add to the launch's log.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np


class SharedState(ABC):
    """What a family keeps of each unit of a shared array's memory, for all blocks of a chunk; a class for each kind.

    It is made with the number of units, and told of the accesses by threads, except atomics.
    """

    units_per_element = 1

    @abstractmethod
    def __init__(self, units: int): ...

    def of_elements(self, units_per_element: int) -> "SharedState":
        """The same memory, for an array whose elements are so many units each."""
        same = copy(self)
        same.units_per_element = units_per_element
        return same

    def units(self, flat: np.ndarray) -> list[np.ndarray]:
        """The first unit of each of the elements `flat`, then the second, and so on."""
        return [flat * self.units_per_element + i for i in range(self.units_per_element)]

    def note_read(self, w, site, array, mask, flat):  # noqa: B027 - most states are told of some accesses alone
        """The lanes of `mask` read the elements `flat` of the array."""

    def note_write(self, w, site, array, mask, flat):  # noqa: B027 - most states are told of some accesses alone
        """The lanes of `mask` have written the elements `flat` of the array."""


class LocalState(ABC):
    """What a family keeps of each thread's own array: of an element and a lane of a warp set; a class for each kind."""

    @abstractmethod
    def __init__(self, shape: tuple[int, int]): ...

    def note_access(self, w, site, array, place, mask):  # noqa: B027 - most states are told of some accesses alone
        """The lanes of `mask` read or write the elements at `place` in the array's memory."""


@dataclass(frozen=True, eq=False)
class Family:
    """A family of instructions; each part is for those that need it.

    Attributes
    ----------
    is_asynchronous
        Operations go on beside the threads that begin them: arrays keep what is in flight (`checks.in_flight`).
    keeps_clocks
        Warps learn of one another by other means than barriers of all: each keeps a clock (`checks.clocks`).
    has_warpgroup_clocks
        The tensor cores of each warpgroup keep one as well.
    keeps_events
        Warps do different things at a time: what they do and wait for is kept as events.
    shared_states, local_states
        What is kept of shared arrays, and of threads' own.
    notes
        Makes what the family's instructions note of a program when it is translated (`Program.use`).
    notes_copies
        The notes are numbers of sites: there an asynchronous copy writes, which is done once its thread has waited.
    check
        Checks a translated program, given that and the family's notes; raises KernelError where it is wrong.
    """

    is_asynchronous: bool = False
    keeps_clocks: bool = False
    has_warpgroup_clocks: bool = False
    keeps_events: bool = False
    shared_states: tuple[type[SharedState], ...] = ()
    local_states: tuple[type[LocalState], ...] = ()
    notes: Callable[[], Any] = set
    notes_copies: bool = False
    check: Callable[[Any, Any], None] | None = None
