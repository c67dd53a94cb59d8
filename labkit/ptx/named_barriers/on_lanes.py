"""Barriers of some warps of a block, by number: those that name the same one wait for one another.

(PTX ISA, "Parallel Synchronization and Communication Instructions: barrier"; a barrier counts whole warps.)
"""

from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.ptx.named_barriers import findings
from labkit.simulator import collectives
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.operands import check_count, waiting_line, whole_number
from labkit.simulator.values import Value
from labkit.simulator.warps import SLOT, START, THREAD
from labkit.trace import WARP_LANES

NUMBERS = range(1, 16)  # 0 is the block's own barrier
NONE = 0

NAMED_BARRIERS = Family(keeps_clocks=True, keeps_events=True)


class NamedBarriers:
    """Which warps of a chunk's blocks have come to which barrier, for how many threads each, and whether they wait."""

    def __init__(self, chunk):
        self.chunk = chunk
        shape = len(chunk.blocks), chunk.launch.warps_per_block
        self.number = np.full(shape, NONE, np.int8)  # of the barrier at which a warp waits
        self.threads = np.zeros((NUMBERS.stop, *shape), np.int64)  # that a warp has come for; 0: it has not come
        size = NUMBERS.stop * shape[0]
        self.arriving = chunk.launch.clocks.barrier_clocks(chunk, size)  # what those know who came and went on
        self.opened = chunk.launch.clocks.barrier_clocks(chunk, size)  # what they knew when the barrier opened
        self.has_arrivals = False  # without a wait
        self.waited = np.zeros((NUMBERS.stop, *shape), np.int32)  # who did when it last opened: their times then, or 0
        self.epochs = np.zeros((NUMBERS.stop, shape[0]), np.int64)  # of the blocks at that time

    def arrive(self, slots, warps, numbers, threads, call):
        """These warps come to a barrier each; a barrier to which all have come opens."""
        findings.check_arrivals(self, slots, warps, numbers, call)
        findings.check_groups(self, slots, warps, numbers, call)
        self.threads[numbers, slots, warps] = threads
        for number in np.unique(numbers):
            threads = self.threads[number]
            came, expected = WARP_LANES * (threads > 0).sum(axis=1), threads.max(axis=1)
            full = np.flatnonzero((came > 0) & (came >= expected))
            findings.check_barriers(self, number, full, call)
            self._open(number, full)

    def tell(self, w, slots, numbers, rows):
        """What these warps know is known to those who wait at their barriers, once they have opened."""
        self.has_arrivals = True
        self._exchange(self.chunk.launch.clocks.pass_on, self.arriving, w, slots, numbers, rows)

    def hear(self, w, slots, numbers, rows):
        """These warps learn what those knew who came to their barriers and went on."""
        if self.has_arrivals:
            self._exchange(self.chunk.launch.clocks.learn, self.opened, w, slots, numbers, rows)

    def _exchange(self, step, clocks, w, slots, numbers, rows):
        places, here = np.zeros(len(w.warps), np.int64), np.zeros(len(w.warps), np.bool_)
        places[rows], here[rows] = slots * NUMBERS.stop + numbers, True
        step(w, clocks, places.take(w.row), here.take(w.row))

    def _open(self, number, slots):
        """The warps that wait at this barrier of these blocks go on, and know what any of them knew."""
        launch, blocks = self.chunk.launch, np.array(self.chunk.blocks)
        here = self.number[slots] == number
        counts = here.sum(axis=1)
        for count in np.unique(counts[counts > 0]):
            same = counts == count
            warps = np.nonzero(here[same])[1].reshape(-1, count)
            launch.clocks.meet(launch.clocks.of(blocks[slots[same]][:, None], warps))
        if launch.clocks.times.size:
            of_all = launch.clocks.of(blocks[slots][:, None], np.arange(launch.warps_per_block))
            self.waited[number, slots] = np.where(here, launch.clocks.times[of_all], 0)
            self.epochs[number, slots] = self.chunk.epochs[slots]
        places = slots * NUMBERS.stop + number
        self.opened[:, places] = self.arriving[:, places]
        self.number[slots] = np.where(here, NONE, self.number[slots])
        self.threads[number, slots] = 0
        launch.version += len(slots)


@dataclass(frozen=True)
class Waiting:
    """What warps of a set wait for."""

    w: object
    barriers: NamedBarriers

    def reason(self, lane: int) -> str:
        """What the wait of a lane lacks."""
        slot, warp = int(self.w.slot[lane]), int(self.w.thread[lane]) // WARP_LANES
        number = int(self.barriers.number[slot, warp])
        threads = self.barriers.threads[number, slot]
        expected, came = int(threads[warp]), WARP_LANES * int((threads > 0).sum())
        return f" at barrier {number}, to which {came} of {expected} threads have come"


@dataclass(frozen=True)
class Come:
    """A function `(number, threads)` that comes to a barrier, and `waits` there or goes on."""

    waits: bool

    def translate(self, translator, node):
        check_count(translator, node, 2)
        whats = "the number of a barrier", "how many threads a barrier waits for"
        number, threads = (
            translator.converted(whole_number(translator, argument, what), types.int64)
            for argument, what in zip(node.args, whats)
        )
        line = waiting_line(translator, node) if self.waits else node.lineno
        call = f"({line}, {node.col_offset}, {translator.written(node.func)!r})"
        begins, run = ("yield from ", sync) if self.waits else ("", arrive)
        translator.emit(f"{begins}{translator.constant(run)}(w, {translator.mask}, {call}, {number}, {threads})")
        return Value("None", types.none)


def arrive(w, mask, call, number, threads):
    """The warps of `mask` come to a barrier each, and go on."""
    mask = collectives.whole_warps(w, mask, call)
    if mask is False:
        return
    rows, slots, warps, numbers, expected = _comers(w, mask, call, number, threads)
    w.launch.events.note(w, mask, "come", call[0], place=number, amount=threads)
    barriers = of(w)
    barriers.tell(w, slots, numbers, rows)
    barriers.arrive(slots, warps, numbers, expected, call)


def sync(w, mask, call, number, threads):
    """The warps of `mask` wait at a barrier each; yields as long as one of them has to."""
    mask = collectives.whole_warps(w, mask, call)
    if mask is False:
        return
    rows, slots, warps, numbers, expected = _comers(w, mask, call, number, threads)
    w.launch.events.note(w, mask, "sync", call[0], place=number, amount=threads)
    barriers = of(w)
    barriers.number[slots, warps] = numbers
    barriers.arrive(slots, warps, numbers, expected, call)
    w.waits_for = Waiting(w, barriers)
    while (left := barriers.number[slots, warps] != NONE).any():
        waiting = np.zeros(len(w.warps), np.bool_)
        waiting[rows] = left
        yield call[0], waiting.take(w.row), ()
    w.waits_for = None
    barriers.hear(w, slots, numbers, rows)


def of(w) -> NamedBarriers:
    """The barriers of the blocks of a warp set's chunk."""
    kept = w.chunk.kept
    return kept.get("named barriers") or kept.setdefault("named barriers", NamedBarriers(w.chunk))


def _comers(w, mask, call, number, threads):
    """Of the warps that come: their rows in `WarpSet.warps`, blocks and numbers; barriers, and threads they name."""
    _check(w, mask, number, threads, call)
    first = w.warps[:, START]
    rows = np.flatnonzero(w.active(mask)[first])
    numbers, expected = (w.fill(value)[first[rows]] for value in (number, threads))
    return rows, w.warps[rows, SLOT], w.warps[rows, THREAD] // WARP_LANES, numbers, expected


def _check(w, mask, number, threads, call):
    """Stops a kernel that names a barrier which does not exist."""
    line, _, name = call
    lanes = w.active(mask)
    for value, what in ((w.fill(number), "number"), (w.fill(threads), "number of threads")):
        if (value != value.take(w.first_lane))[lanes].any():
            raise KernelError(
                f"all lanes of a warp give `{name}` the same {what}; let it depend on the warp alone", line
            )
    numbers, expected = w.fill(number)[lanes], w.fill(threads)[lanes]
    wrong = (numbers < NUMBERS[0]) | (numbers > NUMBERS[-1])
    if wrong.any():
        raise KernelError(
            f"`{name}` takes the numbers {NUMBERS[0]} to {NUMBERS[-1]}, not {numbers[wrong][0]}; 0 is the barrier of "
            "`cuda.syncthreads()`",
            line,
        )
    wrong = (expected <= 0) | (expected % WARP_LANES != 0)
    if wrong.any():
        raise KernelError(
            f"`{name}` waits for whole warps, a multiple of 32 threads, not for {expected[wrong][0]}", line
        )
