"""One run of a launch whose warps alternate, an access at a time, in a given order.

The lanes of a warp stay in lockstep. All blocks run at once, and every warp sees an access at once. A GPU can order its
accesses so, and in more ways: it need not show them to all threads in one order.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random

import numpy as np

from labkit.simulator.errors import LaunchError
from labkit.simulator.scheduler import IDLE_ROUNDS, Chunk, Deadlock, all_equal
from labkit.simulator.translator.program import Access

MAX_TURNS = 5000


@dataclass
class Turn:
    """A warp's turn: its access; or a barrier that `members` passed."""

    warp: int  # its number in the launch; of a barrier, the first of `members`
    line: int
    site: int | None = None
    members: range | None = None
    commutes: str = ""  # an atomic's name, if its order among others of that name changes nothing
    reads: bool = False  # the warp learns the values that it found
    cells: list[int] = field(default_factory=list)  # elements it touched, by numbers unique in the launch's memory
    elements: list[int] = field(default_factory=list)  # the same in C order of their array
    found: list = field(default_factory=list)  # values of these elements before
    values: list = field(default_factory=list)  # and after
    changed: bool = False  # any of them changed
    stands: tuple[int, ...] = ()  # the line of each warp afterwards, 0 if it has ended


class CannotRun(Exception):
    """The order names a warp that waits or has ended."""

    def __init__(self, turn, warp):
        super().__init__(turn, warp)
        self.turn, self.warp = turn, warp


class Order:
    """A rule for the next warp: first the warps of `prefix`, then the first in `ranks` that can run.

    With `shuffle_probability` a turn begins by shuffling the ranks.
    """

    def __init__(self, ranks, prefix=(), shuffle_probability=0.0, random: Random | None = None):
        self.ranks = list(ranks)
        self.prefix = deque(prefix)
        self.turns = 0
        self.shuffle_probability = shuffle_probability
        self.random = random

    def pick(self, ready: list[int]) -> int:
        """Return the warp of `ready` that takes the next turn."""
        self.turns += 1
        if self.prefix:
            warp = self.prefix.popleft()
            if warp not in ready:
                raise CannotRun(self.turns - 1, warp)
            return warp
        if self.shuffle_probability and self.random.random() < self.shuffle_probability:
            self.random.shuffle(self.ranks)
        return min(ready, key=self.ranks.index)

    def note_iteration(self, warp: int):
        """Move a warp that iterates in a waiting loop behind all others."""
        self.ranks.remove(warp)
        self.ranks.append(warp)


class Interleaved(Chunk):
    """All blocks of a launch, with a warp set per warp; `turns` lists what they did."""

    def __init__(self, launch, order: Order):
        if len(launch.dynamic_dtypes) > 1:
            raise LaunchError(
                "the orders of a kernel are not explored where its dynamic shared memory holds several dtypes; use "
                "static arrays, or one dtype"
            )
        super().__init__(launch, list(range(launch.blocks)))
        self.order = order
        self.turns: list[Turn] = []
        self.turn = None
        arrays = launch.arrays.values()
        watched = {a.name for a in arrays if a.shadow is not None}
        self.is_watched_site = [site.space == "shared" or site.array in watched for site in launch.sites]
        self.memories: dict[int, tuple] = {}  # by the memory's id: the number of its first cell, and a copy of it
        num_cells = 0
        for a in (*arrays, *(a for a in self.shared if a is not None)):
            if id(a.data) not in self.memories:
                self.memories[id(a.data)] = num_cells, a.data.copy()
                num_cells += a.data.size
        count = launch.blocks * launch.warps_per_block
        self.cells_read = [set() for _ in range(count)]  # since the last iteration of the warp's waiting loop
        self.has_written = [False] * count  # since then
        self.loop_values = [()] * count  # the values that the loop's condition depended on then
        self.asleep: dict[int, set] = {}  # warps in a waiting loop, and the cells whose change wakes them

    def _schedule(self):
        for number in range(len(self.sets)):
            self._advance(number)
        idle, turns_before = 0, 0  # rounds in which no remaining warp gets on, and the number of turns before them
        while not all(s.done for s in self.sets):
            self._pass_barriers()
            ready = [n for n, s in enumerate(self.sets) if not (s.done or s.barrier or n in self.asleep)]
            if ready:
                if not idle and len(self.turns) >= MAX_TURNS:
                    raise LaunchError(
                        f"this launch was stopped after {MAX_TURNS:,} accesses in one order; explore fewer threads or "
                        "a smaller problem, and make sure that every loop ends"
                    )
                if self._take_turn(self.order.pick(ready)):
                    idle = 0
            elif self.asleep and idle < IDLE_ROUNDS:
                turns_before = turns_before if idle else len(self.turns)
                idle += 1
                for number in sorted(self.asleep):
                    self._wake(number)
            else:
                if idle:
                    del self.turns[turns_before:]
                self._stuck([s for s in self.sets if not s.done])
                idle = 0

    def _take_turn(self, number) -> bool:
        """Run a warp through one access; return whether the launch made progress."""
        s = self.sets[number]
        site = _sites(s.at)[0]
        reads = self.launch.sites[site].kind != "store" and not s.at.commutes
        turn = self.turn = Turn(number, s.line, site, commutes=s.at.commutes, reads=reads)
        self.turns.append(turn)
        self._advance(number)
        self.has_written[number] |= turn.changed
        if turn.changed:
            for other in [n for n, cells in self.asleep.items() if n != number and not cells.isdisjoint(turn.cells)]:
                self._wake(other)
        self._pass_barriers()
        return turn.changed or s.done or s.barrier or self.turns[-1] is not turn

    def _advance(self, number):
        """Run a warp to its next access, or to where it waits or ends."""
        s = self.sets[number]
        while True:
            s.step()
            if s.done:
                self._release()
            if s.done or s.barrier:
                return
            if isinstance(s.at, Access):
                if any(self.is_watched_site[site] for site in _sites(s.at)):
                    return
            elif self._falls_asleep(number, s.at):
                return

    def _falls_asleep(self, number, values) -> bool:
        """End an iteration of a waiting loop; return whether the warp must wait for a change of what it read."""
        self.order.note_iteration(number)
        progressed = self.has_written[number] or (values and not all_equal(values, self.loop_values[number]))
        cells, self.cells_read[number] = self.cells_read[number], set()
        self.has_written[number], self.loop_values[number] = False, values
        if progressed or not cells:
            return False
        self.asleep[number] = cells
        return True

    def _wake(self, number):
        """Let a warp check the condition of its waiting loop again."""
        del self.asleep[number]
        self._advance(number)

    def _pass_barriers(self):
        """Run the warps whose barrier has opened to their next access."""
        while passed := [n for n, s in enumerate(self.sets) if not s.done and s.barrier and self._released(s)]:
            for number in passed:
                self._advance(number)
        for turn in reversed(self.turns):
            if turn.stands:
                break
            turn.stands = self._warp_lines()

    def _warp_lines(self):
        """Return the line of each warp, 0 if it has ended."""
        return tuple(0 if s.done else s.line for s in self.sets)

    def sample(self, w, site, array, mask, flat):
        """Record an access in the current turn."""
        if array.shadow is None:
            return
        offsets = np.unique(flat if mask is None else flat[mask])
        turn, (first_cell, before) = self.turn, self.memories[id(array.data)]
        found, values = before[offsets], array.data[offsets]
        before[offsets] = values
        turn.site = site
        turn.cells += (first_cell + offsets).tolist()
        turn.elements += array.c_order(offsets % array.elements if array.space == "shared" else offsets).tolist()
        turn.found += found.tolist()
        turn.values += values.tolist()
        turn.changed |= found.tobytes() != values.tobytes()
        self.cells_read[turn.warp].update(turn.cells)

    def _sample_barrier(self, line, slots):
        if self.turn and not self.turn.stands:  # the barrier opens in the middle of a turn: its warp is there now
            lines = enumerate(self._warp_lines())
            self.turn.stands = tuple(line if n == self.turn.warp else other for n, other in lines)
        per_block = self.launch.warps_per_block
        members = range(int(slots[0]) * per_block, int(slots[-1] + 1) * per_block)  # one block, or all
        self.turns.append(Turn(members[0], line, members=members))


def _sites(access) -> list[int]:
    return [*access.site.values()] if isinstance(access.site, dict) else [access.site]


def run_in(order: Order, launch) -> tuple[list[Turn], bool]:
    """Run a launch in this order; return its turns, and whether it ended (False: it hangs).

    Turns of a hanging launch in which no warp makes progress are left out.
    """
    chunk = Interleaved(launch, order)
    try:
        with np.errstate(all="ignore"):
            chunk.run()
    except Deadlock:
        return chunk.turns, False
    return chunk.turns, True
