"""Memory that an asynchronous operation still writes or reads, and that no other access may touch until then.

The simulator delivers as late as it may: when a thread waits for the operation. Until then each element that it writes
or reads holds the operation's number, and an access to such an element is a finding. An array has this state only in a
kernel that uses such instructions (`Program.is_asynchronous`), an argument only where the kernel writes to it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

NONE = 0
CURE_OF_A_RING = (
    "The ring is too short for this many copies in flight: add a stage, or issue each copy one iteration later."
)


@dataclass(frozen=True)
class Operation:
    """An asynchronous operation, such as a copy to shared memory."""

    site: int  # the access that began it
    name: str
    cure: str  # a sentence that says how to wait for it
    reads: bool = False  # it only reads the memory, so that others may read it too
    is_atomic: bool = False  # it changes each element at once, so that atomics may change it too
    explain: Callable[..., str] | None = None  # returns a better cure for (warp set, element, thread), or ""


@dataclass
class _Cells:
    """A cell per unit of memory: the operation at work on it, or NONE, and the block and thread that began it."""

    operation: np.ndarray
    block: np.ndarray
    thread: np.ndarray
    busy: int = 0  # elements in flight, once for each thread that began their operation
    operations: list[Operation | None] = field(default_factory=lambda: [None])


class InFlight:
    """Operations in flight to a shared array, whose elements are several units of memory each."""

    def __init__(self, units: int):
        self._cells = _Cells(*(np.zeros(units, np.int32) for _ in range(3)))
        self._units_per_element = 1

    def of_elements(self, units_per_element: int) -> "InFlight":
        """Return the same memory, for an array whose elements are `units_per_element` units."""
        same = InFlight(0)
        same._cells, same._units_per_element = self._cells, units_per_element
        return same

    @property
    def busy(self) -> bool:
        """True while any operation is in flight."""
        return self._cells.busy > 0

    def begin(self, operation: Operation, flat: np.ndarray, w, lanes: np.ndarray) -> int:
        """Mark the elements `flat`, an equal share for each of the lane numbers `lanes`; return a number for `end`."""
        if not len(lanes):
            return NONE
        per_lane = len(flat) // len(lanes)
        cells = self._cells
        if self._overtakes_copy(operation, flat):
            operation = replace(operation, cure=CURE_OF_A_RING, explain=None)
        cells.operations.append(operation)
        number = len(cells.operations) - 1
        cells.busy += len(flat)
        for unit in self._units(flat):
            cells.operation[unit] = number
            cells.block[unit] = np.repeat(w.block[lanes], per_lane)
            cells.thread[unit] = np.repeat(w.thread[lanes], per_lane)
        return number

    def _overtakes_copy(self, operation, flat):
        """Return whether an earlier copy of the same line is still in flight to these elements."""
        cells = self._cells
        if not cells.busy or operation.reads:
            return False
        before = np.unique(np.concatenate([cells.operation[unit] for unit in self._units(flat)]))
        return any(cells.operations[number].site == operation.site for number in before if number != NONE)

    def end(self, number: int, flat: np.ndarray):
        """Mark the elements `flat` of an operation as arrived."""
        cells = self._cells
        cells.busy -= len(flat)
        for unit in self._units(flat):
            arrived = unit[cells.operation[unit] == number]
            cells.operation[arrived] = NONE

    def find_early_accesses(
        self, w, site: int, array, flat: np.ndarray, lanes: np.ndarray, unchanged=None, is_atomic=False
    ):
        """Note and return the lanes whose access comes too early; None if there are none.

        `unchanged` has the lanes whose write leaves the value as it is; None for a read.
        """
        cells, writes = self._cells, unchanged is not None
        if not cells.busy:
            return None
        if writes:
            lanes = self._writers(lanes, unchanged)
        early = None
        for unit in self._units(flat):
            found = lanes & (cells.operation.take(unit) != NONE)
            if found.any():
                found &= self._concerns(w, unit)
            if not writes and found.any():
                harmless = [
                    begun is not None and (begun.is_atomic if is_atomic else begun.reads) for begun in cells.operations
                ]
                found &= ~np.array(harmless)[cells.operation.take(unit)]
            if found.any():
                early = found if early is None else early | found
                lane = int(np.argmax(found))
                operation = cells.operations[cells.operation[unit[lane]]]
                beginner = int(cells.block[unit[lane]]), int(cells.thread[unit[lane]])
                w.chunk.launch.log.in_flight(w, site, array, flat, found, operation, beginner)
        return early

    def _writers(self, lanes, unchanged):
        """Return the lanes whose write matters: here all, since the value in flight may be another."""
        return lanes

    def _concerns(self, w, unit):
        """Return the lanes that an operation in flight at these units concerns: here those of any block."""
        return True

    def _units(self, flat):
        """Return the units of the elements, one array per unit of an element."""
        return [flat * self._units_per_element + i for i in range(self._units_per_element)]


class GlobalInFlight(InFlight):
    """Operations in flight in the memory of an argument.

    They concern only the block that began them. For others the operation is an access like any other, which may race.
    """

    def _overtakes_copy(self, operation, flat):
        return False

    def _writers(self, lanes, unchanged):
        return lanes & ~unchanged

    def _concerns(self, w, unit):
        return self._cells.block.take(unit) == w.block


@dataclass(frozen=True)
class PendingRead:
    """Elements of an argument that an operation reads: the n-th of `places` for the n-th of `callers`."""

    in_flight: GlobalInFlight
    number: int  # of the operation, from `InFlight.begin`
    callers: np.ndarray  # numbers of the threads that began it
    places: np.ndarray  # offsets of the elements in the argument's memory

    def end(self, done: np.ndarray):
        """End the operation for the callers that `done`, one bool each, marks."""
        self.in_flight.end(self.number, self.places[done[self.callers]])
