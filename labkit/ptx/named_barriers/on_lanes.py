"""Barriers of some warps of a block, by number: those that name the same one wait for one another.

(PTX ISA, "Parallel Synchronization and Communication Instructions: barrier"; a barrier counts whole warps.)
"""

from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator import collectives
from labkit.simulator.checks import barrier_findings as findings
from labkit.simulator.errors import KernelError
from labkit.simulator.operands import check_count, waiting_line, whole_number
from labkit.simulator.translator.values import Value
from labkit.simulator.warps import SLOT, START, THREAD
from labkit.trace import WARP_LANES

NUMBERS = range(1, 16)  # 0 is the block's own barrier
NONE = 0


class NamedBarriers:
    """Which warps of a chunk's blocks wait, at which barrier, and for how many threads each."""

    def __init__(self, chunk):
        self.chunk = chunk
        shape = len(chunk.blocks), chunk.launch.warps_per_block
        self.number = np.full(shape, NONE, np.int8)
        self.threads = np.zeros(shape, np.int64)

    def arrive(self, slots, warps, numbers, threads, call):
        """These warps come to a barrier each; a barrier to which all have come opens."""
        self.number[slots, warps], self.threads[slots, warps] = numbers, threads
        for number in np.unique(numbers):
            here = self.number == number
            came, expected = WARP_LANES * here.sum(axis=1), np.where(here, self.threads, 0).max(axis=1)
            full = np.flatnonzero((came > 0) & (came >= expected))
            findings.check_barriers(self, number, full, call)
            self._open(here, full)

    def _open(self, here, slots):
        """The warps `here` of these blocks go on, and know what any of them knew."""
        launch, blocks = self.chunk.launch, np.array(self.chunk.blocks)
        counts = here[slots].sum(axis=1)
        for count in np.unique(counts):
            rows = slots[counts == count]
            warps = np.nonzero(here[rows])[1].reshape(-1, count)
            launch.clocks.meet(launch.clocks.of(blocks[rows][:, None], warps))
        self.number[slots] = np.where(here[slots], NONE, self.number[slots])
        launch.version += len(slots)


@dataclass(frozen=True)
class Waiting:
    """What warps of a set wait for."""

    w: object
    barriers: NamedBarriers

    def reason(self, lane: int) -> str:
        """What the wait of a lane lacks."""
        slot, warp = int(self.w.slot[lane]), int(self.w.thread[lane]) // WARP_LANES
        number, expected = int(self.barriers.number[slot, warp]), int(self.barriers.threads[slot, warp])
        came = WARP_LANES * int((self.barriers.number[slot] == number).sum())
        return f" at barrier {number}, to which {came} of {expected} threads have come"


class Sync:
    """A function `(number, threads)` that waits at a barrier."""

    def translate(self, translator, node):
        check_count(translator, node, 2)
        whats = "the number of a barrier", "how many threads a barrier waits for"
        number, threads = (
            translator.converted(whole_number(translator, argument, what), types.int64)
            for argument, what in zip(node.args, whats)
        )
        line = waiting_line(translator, node)
        translator.program.named_barriers = True
        call = f"({line}, {node.col_offset}, {translator.written(node.func)!r})"
        run = translator.constant(sync)
        translator.emit(f"yield from {run}(w, {translator.mask}, {call}, {number}, {threads})")
        return Value("None", types.none)


def sync(w, mask, call, number, threads):
    """The warps of `mask` wait at a barrier each; yields as long as one of them has to."""
    mask = collectives.whole_warps(w, mask, call)
    if mask is False:
        return
    first = w.warps[:, START]
    rows = np.flatnonzero(w.active(mask)[first])
    numbers, expected = (w.fill(value)[first[rows]] for value in (number, threads))
    _check(w, mask, number, threads, call)
    slots, warps = w.warps[rows, SLOT], w.warps[rows, THREAD] // WARP_LANES
    kept = w.chunk.kept
    barriers = kept.get("named barriers") or kept.setdefault("named barriers", NamedBarriers(w.chunk))
    barriers.arrive(slots, warps, numbers, expected, call)
    w.waits_for = Waiting(w, barriers)
    while (left := barriers.number[slots, warps] != NONE).any():
        waiting = np.zeros(len(w.warps), np.bool_)
        waiting[rows] = left
        yield call[0], waiting.take(w.row), ()
    w.waits_for = None


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
