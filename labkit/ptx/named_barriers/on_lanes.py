"""Named barriers on lanes: warps of a block that name the same number wait for one another.

(PTX ISA, "Parallel Synchronization and Communication Instructions: barrier"; a barrier counts whole warps.)
`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `call` the line, column and name of the call.
A chunk is the blocks of a launch that run together, and a slot the number of one in it.
"""

from dataclasses import dataclass

import numpy as np

from labkit.ptx.named_barriers import findings
from labkit.ptx.translation import call_site, emit_call
from labkit.simulator import collectives
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.operands import check_argument_count, integer_argument, waiting_line
from labkit.simulator.seam import types
from labkit.simulator.warps import SLOT, START, THREAD
from labkit.trace import WARP_LANES

NUMBERS = range(1, 16)  # 0 is the block's own barrier
NONE = 0

NAMED_BARRIERS = Family(keeps_clocks=True, keeps_events=True)


class NamedBarriers:
    """State of the named barriers of a chunk's blocks: arrived warps, their thread counts, and waiting warps."""

    def __init__(self, chunk):
        self.chunk = chunk
        shape = len(chunk.blocks), chunk.launch.warps_per_block
        self.number = np.full(shape, NONE, np.int8)  # barrier at which a warp waits
        self.threads = np.zeros((NUMBERS.stop, *shape), np.int64)  # with which a warp has arrived; 0: it has not
        size = NUMBERS.stop * shape[0]
        self.arriving = chunk.launch.clocks.barrier_clocks(chunk, size)  # clocks of warps that arrived without waiting
        self.opened = chunk.launch.clocks.barrier_clocks(chunk, size)  # the same when the barrier opened
        self.has_arrivals = False  # without waiting
        self.waited = np.zeros((NUMBERS.stop, *shape), np.int32)  # times of warps that waited at the last opening, or 0
        self.barriers_passed = np.zeros((NUMBERS.stop, shape[0]), np.int64)  # of the blocks at that opening

    def arrive(self, slots, warps, numbers, threads, call):
        """Let these warps arrive at a barrier each, and open the barriers at which all have arrived."""
        findings.check_arrivals(self, slots, warps, numbers, call)
        findings.check_groups(self, slots, warps, numbers, call)
        self.threads[numbers, slots, warps] = threads
        for number in np.unique(numbers):
            threads = self.threads[number]
            arrived, expected = WARP_LANES * (threads > 0).sum(axis=1), threads.max(axis=1)
            full = np.flatnonzero((arrived > 0) & (arrived >= expected))
            findings.check_thread_counts(self, number, full, call)
            self._open(number, full)

    def publish(self, w, slots, numbers, rows):
        """Publish the clocks of these warps to the warps that wait at their barriers, for when they open."""
        self.has_arrivals = True
        self._exchange(self.chunk.launch.clocks.pass_on, self.arriving, w, slots, numbers, rows)

    def learn(self, w, slots, numbers, rows):
        """Let these warps learn the clocks of warps that arrived at their barriers without waiting."""
        if self.has_arrivals:
            self._exchange(self.chunk.launch.clocks.learn, self.opened, w, slots, numbers, rows)

    def _exchange(self, exchange, clocks, w, slots, numbers, rows):
        columns, here = np.zeros(len(w.warps), np.int64), np.zeros(len(w.warps), np.bool_)
        columns[rows], here[rows] = slots * NUMBERS.stop + numbers, True
        exchange(w, clocks, columns.take(w.row), here.take(w.row))

    def _open(self, number, slots):
        """Resume the warps that wait at this barrier of these blocks, and merge their clocks."""
        launch, blocks = self.chunk.launch, np.array(self.chunk.blocks)
        here = self.number[slots] == number
        counts = here.sum(axis=1)
        for count in np.unique(counts[counts > 0]):
            same = counts == count
            warps = np.nonzero(here[same])[1].reshape(-1, count)
            launch.clocks.join_clocks(launch.clocks.of(blocks[slots[same]][:, None], warps))
        if launch.clocks.are_kept:
            all_warps = launch.clocks.of(blocks[slots][:, None], np.arange(launch.warps_per_block))
            self.waited[number, slots] = np.where(here, launch.clocks.times[all_warps], 0)
            self.barriers_passed[number, slots] = self.chunk.barriers_passed[slots]
        columns = slots * NUMBERS.stop + number  # of clocks
        self.opened[:, columns] = self.arriving[:, columns]
        self.number[slots] = np.where(here, NONE, self.number[slots])
        self.threads[number, slots] = 0
        launch.version += len(slots)


@dataclass(frozen=True)
class Waiting:
    """State of waiting warps of a warp set."""

    w: object
    barriers: NamedBarriers

    def reason(self, lane: int) -> str:
        """Return what the wait of a lane lacks."""
        slot, warp = int(self.w.slot[lane]), int(self.w.thread[lane]) // WARP_LANES
        number = int(self.barriers.number[slot, warp])
        threads = self.barriers.threads[number, slot]
        expected, arrived = int(threads[warp]), WARP_LANES * int((threads > 0).sum())
        return f" at barrier {number}, to which {arrived} of {expected} threads have come"


@dataclass(frozen=True)
class BarrierCall:
    """Call `(number, threads)` that arrives at a barrier, and `waits` there or not."""

    waits: bool

    def translate(self, translator, node):
        check_argument_count(translator, node, 2)
        meanings = "the number of a barrier", "how many threads a barrier waits for"
        operands = [integer_argument(translator, argument, meaning) for argument, meaning in zip(node.args, meanings)]
        number, threads = (translator.converted(operand, types.int64) for operand in operands)
        call = call_site(translator, node, waiting_line(translator, node) if self.waits else node.lineno)
        run = sync if self.waits else arrive
        return emit_call(translator, run, translator.mask, call, number, threads, waits=self.waits)


def arrive(w, mask, call, number, threads):
    """Let the warps of `mask` arrive at a barrier each, without waiting."""
    mask = collectives.keep_whole_warps(w, mask, call)
    if mask is False:
        return
    rows, slots, warps, numbers, expected = _arriving_warps(w, mask, call, number, threads)
    w.launch.events.note(w, mask, "barrier arrive", call[0], barrier_number=number, amount=threads)
    barriers = get_barriers(w)
    barriers.publish(w, slots, numbers, rows)
    barriers.arrive(slots, warps, numbers, expected, call)


def sync(w, mask, call, number, threads):
    """Let the warps of `mask` wait at a barrier each; yields as long as one of them has to."""
    mask = collectives.keep_whole_warps(w, mask, call)
    if mask is False:
        return
    rows, slots, warps, numbers, expected = _arriving_warps(w, mask, call, number, threads)
    w.launch.events.note(w, mask, "barrier sync", call[0], barrier_number=number, amount=threads)
    barriers = get_barriers(w)
    barriers.number[slots, warps] = numbers
    barriers.arrive(slots, warps, numbers, expected, call)
    w.waits_for = Waiting(w, barriers)
    while (is_closed := barriers.number[slots, warps] != NONE).any():
        waiting = np.zeros(len(w.warps), np.bool_)
        waiting[rows] = is_closed
        yield call[0], waiting.take(w.row), ()
    w.waits_for = None
    barriers.learn(w, slots, numbers, rows)


def get_barriers(w) -> NamedBarriers:
    """Return the barriers of a warp set's chunk."""
    kept = w.chunk.kept
    return kept.get("named barriers") or kept.setdefault("named barriers", NamedBarriers(w.chunk))


def _arriving_warps(w, mask, call, number, threads):
    """Return rows in `WarpSet.warps`, blocks, numbers, barriers and thread counts of the warps that arrive."""
    _check(w, mask, number, threads, call)
    first = w.warps[:, START]
    rows = np.flatnonzero(w.active(mask)[first])
    numbers, expected = (w.fill(value)[first[rows]] for value in (number, threads))
    return rows, w.warps[rows, SLOT], w.warps[rows, THREAD] // WARP_LANES, numbers, expected


def _check(w, mask, number, threads, call):
    """Raise KernelError for an invalid barrier or number of threads."""
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
