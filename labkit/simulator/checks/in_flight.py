"""Memory that an asynchronous operation is still writing or reading: nobody may touch, or overwrite, it until then.

The simulator delivers as late as it may, when somebody waits for the operation. From its beginning until then each
element that it writes or reads has the operation's number, and an access that comes upon one is a finding. An array
has this state only in a kernel that uses such instructions (`Program.is_asynchronous`), and an argument only where the
kernel writes to it.
"""

from dataclasses import dataclass, field, replace

import numpy as np

NONE = 0
CURE_OF_A_RING = (
    "The ring is too short for so many copies at a time, if each is waited for before its use: give it one stage more, "
    "or let copies run one step less ahead."
)


@dataclass(frozen=True)
class Operation:
    """What is under way: the site that began it, what it is called, and how to wait for it.

    reads: it only reads the memory, so that others may do that as well.
    is_atomic: it changes each element at once, so that atomics may do that as well.
    """

    site: int
    name: str
    cure: str
    reads: bool = False
    is_atomic: bool = False


@dataclass
class _Cells:
    """A unit of memory a cell: the operation at work on it, NONE for none, and the block and thread that began it."""

    operation: np.ndarray
    block: np.ndarray
    thread: np.ndarray
    busy: int = 0  # elements on the way, each for every thread that began its operation
    operations: list[Operation | None] = field(default_factory=lambda: [None])


class InFlight:
    """What is under way to a shared array, whose elements are `each` units of memory."""

    def __init__(self, units: int):
        self._cells = _Cells(*(np.zeros(units, np.int32) for _ in range(3)))
        self._units_per_element = 1

    def of_elements(self, each: int) -> "InFlight":
        """The same memory, as an array sees it whose elements are `each` units."""
        seen = InFlight(0)
        seen._cells, seen._units_per_element = self._cells, each
        return seen

    @property
    def busy(self) -> bool:
        """Whether anything is under way."""
        return self._cells.busy > 0

    def begin(self, operation: Operation, flat: np.ndarray, w, lanes: np.ndarray) -> int:
        """Marks the elements `flat`, for as many of which each of `lanes` (numbers in the set) began the operation.

        Returns the number by which `end` knows it.
        """
        if not len(lanes):
            return NONE
        each = len(flat) // len(lanes)
        cells = self._cells
        if self._overtakes_copy(operation, flat):
            operation = replace(operation, cure=CURE_OF_A_RING)
        cells.operations.append(operation)
        number = len(cells.operations) - 1
        cells.busy += len(flat)
        for place in self._units(flat):
            cells.operation[place] = number
            cells.block[place] = np.repeat(w.block[lanes], each)
            cells.thread[place] = np.repeat(w.thread[lanes], each)
        return number

    def _overtakes_copy(self, operation, flat):
        """Whether an earlier copy of the same line is still on its way to these elements."""
        cells = self._cells
        if not cells.busy or operation.reads:
            return False
        before = np.unique(np.concatenate([cells.operation[place] for place in self._units(flat)]))
        return any(cells.operations[number].site == operation.site for number in before if number != NONE)

    def end(self, number: int, flat: np.ndarray):
        """The elements `flat` of an operation have arrived."""
        cells = self._cells
        cells.busy -= len(flat)
        for place in self._units(flat):
            arrived = place[cells.operation[place] == number]
            cells.operation[arrived] = NONE

    def find_early_accesses(
        self, w, site: int, array, flat: np.ndarray, lanes: np.ndarray, unchanged=None, is_atomic=False
    ):
        """The lanes whose element is still being written, or read where they write it, which is noted; or None.

        `unchanged`, of a write, says where it leaves what is there; None of a read.
        """
        cells, writes = self._cells, unchanged is not None
        if not cells.busy:
            return None
        if writes:
            lanes = self._writers(lanes, unchanged)
        early = None
        for place in self._units(flat):
            found = lanes & (cells.operation.take(place) != NONE)
            if found.any():
                found &= self._concerns(w, place)
            if not writes and found.any():
                harmless = [one is not None and (one.is_atomic if is_atomic else one.reads) for one in cells.operations]
                found &= ~np.array(harmless)[cells.operation.take(place)]
            if found.any():
                early = found if early is None else early | found
                lane = int(np.argmax(found))
                operation = cells.operations[cells.operation[place[lane]]]
                who = int(cells.block[place[lane]]), int(cells.thread[place[lane]])
                w.chunk.launch.log.in_flight(w, site, array, flat, found, operation, who)
        return early

    def _writers(self, lanes, unchanged):
        """The lanes whose write matters: here all, for what is on its way may be another value."""
        return lanes

    def _concerns(self, w, place):
        """Which lanes what is under way at these places concerns: those of whichever block."""
        return True

    def _units(self, flat):
        return [flat * self._units_per_element + i for i in range(self._units_per_element)]


class GlobalInFlight(InFlight):
    """What is under way in the memory of an argument.

    It concerns the block that began it alone: for the others the operation is an access as any other, which may race.
    """

    def _overtakes_copy(self, operation, flat):
        return False

    def _writers(self, lanes, unchanged):
        return lanes & ~unchanged

    def _concerns(self, w, place):
        return self._cells.block.take(place) == w.block


@dataclass(frozen=True)
class PendingRead:
    """Elements of an argument that an operation reads for some callers, by number: the n-th place for the n-th."""

    in_flight: GlobalInFlight
    number: int
    callers: np.ndarray
    places: np.ndarray

    def end(self, done: np.ndarray):
        """The operation is done for the callers of whom `done`, a bool for each, says so."""
        self.in_flight.end(self.number, self.places[done[self.callers]])
