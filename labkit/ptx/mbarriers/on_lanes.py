"""Barriers in shared memory on lanes: arrivals at each, bytes that have been copied, and waiting lanes.

Copies that count on a barrier complete as late as possible: when all threads have arrived and a lane waits for the
phase. So any use of their bytes without a wait is found.
`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
`w.chunk` has the blocks that run at the same time. Vector clocks say which work of other warps a warp has seen.
`launch.version` counts changes for which warps may wait: if none comes, the scheduler finds a deadlock.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit.ptx.clusters import on_lanes as clusters
from labkit.ptx.mbarriers import findings
from labkit.ptx.mbarriers.wait_cures import cure_of_waits
from labkit.ptx.translation import emit_call
from labkit.simulator import memory
from labkit.simulator.family import Family
from labkit.simulator.operands import check_argument_count, integer_argument, resolve_element, waiting_line
from labkit.simulator.seam import types
from labkit.simulator.values import describe


class Mbarriers:
    """Barriers of one shared array, numbered through all blocks of a chunk, one block after the other."""

    def __init__(self, array, chunk):
        self.array, self.per_block = array, int(array.size_value)
        size = self.per_block * len(chunk.blocks)
        self.count = np.zeros(size, np.int64)  # arrivals of a phase; 0: not set up
        self.is_fenced = np.zeros(size, np.bool_)  # since its initialisation
        self.pending = np.zeros(size, np.int64)  # arrivals that the phase lacks
        self.expected_bytes = np.zeros(size, np.int64)
        self.arrived_bytes = np.zeros(size, np.int64)
        self.phase = np.zeros(size, np.int64)  # the incomplete one
        self.arriving = chunk.launch.clocks.barrier_clocks(chunk, size)  # clocks of all that have arrived
        self.complete = chunk.launch.clocks.barrier_clocks(chunk, size)  # clocks of all that arrived in complete phases
        self.copies: dict[int, list] = {}  # (copy, number of a box), not complete yet

    def numbers(self, flat):
        """Return the numbers of the barriers at `flat` in the array's memory."""
        slot, within = np.divmod(flat, self.array.elements)
        return slot * self.per_block + within - self.array.offset

    def arrive(self, numbers, expected):
        """Count an arrival at each of these barriers, and more expected bytes; return those with too many arrivals."""
        arrivals = np.bincount(numbers)
        here = np.flatnonzero(arrivals)
        too_many = here[arrivals[here] > self.pending[here]]
        self.pending[here] = np.maximum(self.pending[here] - arrivals[here], 0)
        np.add.at(self.expected_bytes, numbers, expected)
        self._complete(here)
        return too_many

    def queue(self, copy, numbers):
        """Queue the boxes of a copy, each of which counts its bytes at one of these barriers."""
        for box, number in enumerate(numbers.tolist()):
            self.copies.setdefault(number, []).append((copy, box))

    def land(self, numbers):
        """Complete all queued copies that count on these barriers."""
        boxes = {}
        for number in numbers.tolist():
            for copy, box in self.copies.pop(number, ()):
                boxes.setdefault(copy, []).append(box)
                self.arrived_bytes[number] += copy.box_bytes
        for copy, landing in boxes.items():
            copy.land(np.array(landing))
        if boxes:
            self._complete(numbers)

    def _complete(self, numbers):
        """Begin the next phase where this one lacks neither arrivals nor bytes."""
        done = numbers[(self.pending[numbers] == 0) & (self.expected_bytes[numbers] == self.arrived_bytes[numbers])]
        self.phase[done] += 1
        self.pending[done] = self.count[done]
        self.expected_bytes[done] = self.arrived_bytes[done] = 0
        self.complete[:, done] = self.arriving[:, done]

    def is_waiting(self, numbers, parity):
        """Return for each barrier whether its phase of this parity is incomplete."""
        return self.phase[numbers] & 1 == parity


def get_barriers(w, array) -> Mbarriers:
    """Return the barriers of a shared array."""
    chunk = w.chunk
    by_array = chunk.kept.setdefault("mbarriers", {})
    if array.root not in by_array:
        barriers = by_array[array.root] = Mbarriers(array.root, chunk)
        chunk.end_checks.append(lambda: _check_end(chunk.launch, barriers))
    return by_array[array.root]


def _check_end(launch, barriers):
    for number, copies in barriers.copies.items():
        for copy, _ in copies:
            findings.note_unfinished_copy(launch, barriers, number, copy.site)


# --- on lanes ------------------------------------------------------------------------------------


def init(w, site, array, mask, index, count):
    """Initialise barriers for phases of `count` arrivals."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return
    barriers, lanes = get_barriers(w, array), w.active(mask)
    memory.count_accesses(w, site, array, flat, mask, False)
    memory.write(w, site, array, mask, flat, w.fill(count).astype(np.uint64))
    numbers = barriers.numbers(flat)
    here, counts = numbers[lanes], w.fill(count)[lanes]
    again = lanes & (barriers.count[numbers] > 0)
    again[lanes] |= np.bincount(here)[here] > 1
    if again.any():
        findings.note_set_up_again(w, site, barriers, numbers, again)
    if (counts < 1).any():
        findings.note_no_arrivals(w, site, barriers, numbers, lanes & (w.fill(count) < 1))
        counts = np.maximum(counts, 1)
    barriers.count[here] = barriers.pending[here] = counts
    barriers.is_fenced[here] = False
    _note(w, "init", site, mask, numbers, barriers, count)
    barriers.phase[here] = barriers.expected_bytes[here] = barriers.arrived_bytes[here] = 0
    w.chunk.launch.version += 1


def fence_init(w, mask):
    """Run `mbarrier_init_fence`: make the barriers that these lanes' blocks initialised known to TMA."""
    slots = np.unique(w.slot[w.active(mask)])
    for barriers in w.chunk.kept.get("mbarriers", {}).values():
        barriers.is_fenced.reshape(-1, barriers.per_block)[slots] = True


def arrive(w, site, array, mask, index, expected=0):
    """Arrive, and make the phase expect more bytes of copies."""
    numbers, mask = find_barriers(w, site, array, mask, index)
    if mask is not False:
        _arrive(w, site, array, numbers, mask, expected)


def arrive_at(w, site, array, mask, index, line, cta):
    """Arrive at the same barrier of block `cta` of each lane's cluster."""
    w.chunk.launch.clocks.publish(w, mask)
    offset = clusters.block_offset(w, w.active(mask), cta, line)
    numbers, mask = find_barriers(w, site, array, mask, index, offset)
    if mask is not False:
        _arrive(w, site, array, numbers, mask, 0)
        clusters.note_remote_access(w, w.active(mask), offset, site)


def _arrive(w, site, array, numbers, mask, expected):
    barriers, lanes = get_barriers(w, array), w.active(mask)
    _note(w, "arrive", site, mask, numbers, barriers, expected)
    w.chunk.launch.clocks.pass_on(w, barriers.arriving, numbers, lanes)
    too_many = barriers.arrive(numbers[lanes], w.fill(expected)[lanes])
    if too_many.size:
        findings.note_too_many_arrivals(w, site, barriers, numbers, lanes & np.isin(numbers, too_many))
    w.chunk.launch.version += 1


def wait(w, site, array, mask, index, line, parity):
    """Wait until the phase of that parity is complete for all of these lanes."""
    numbers, mask = find_barriers(w, site, array, mask, index)
    if mask is False:
        return
    barriers, lanes, parity = get_barriers(w, array), w.active(mask), w.fill(parity)
    invalid = lanes & (parity != 0) & (parity != 1)
    if invalid.any():
        findings.note_wrong_parity(w, site, barriers, numbers, invalid, parity)
        lanes = lanes & ~invalid
    phase = barriers.phase[numbers] - ~barriers.is_waiting(numbers, parity)
    _note(w, "wait", site, lanes, numbers, barriers, phase)
    while True:
        waiting = lanes & barriers.is_waiting(numbers, parity)
        if waiting.any():
            needed = np.unique(numbers[waiting])
            barriers.land(needed[barriers.pending[needed] == 0])
            waiting = lanes & barriers.is_waiting(numbers, parity)
        if not waiting.any():
            break
        w.waits_for = Waiting(barriers, numbers, parity)
        yield line, waiting, ()
    w.waits_for = None
    w.chunk.launch.clocks.learn(w, barriers.complete, numbers, lanes)


def _note(w, kind, site, mask, numbers, barriers, amount):
    """Record as events what the lanes of `mask` do at their barriers."""
    site, within = w.launch.sites[site], numbers % barriers.per_block
    w.launch.events.note(w, mask, kind, site.line, barriers=site.array, barrier_number=within, amount=amount)


@dataclass(frozen=True)
class Waiting:
    """State of waiting lanes: the barrier of each, and the parity of the phase."""

    barriers: Mbarriers
    numbers: np.ndarray
    parity: np.ndarray

    def reason(self, lane: int) -> str:
        """Return what the wait of a lane lacks."""
        return findings.describe_missing(self.barriers, int(self.numbers[lane]), int(self.parity[lane]))

    def cure(self, kernel, lane: int, others) -> str:
        """Return a sentence on how to end the waits of a lane and of others, (wait, lane); "" if nothing shows it."""
        waits = [(self, lane), *((wait, at) for wait, at in others if isinstance(wait, Waiting))]
        return cure_of_waits(kernel, [(w.barriers, int(w.numbers[at]), int(w.parity[at])) for w, at in waits])


def find_barriers(w, site, array, mask, index, block_offset=0):
    """Return the lanes' barriers, at an offset in blocks within the chunk, and the lanes with an initialised one."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    barriers, lanes = get_barriers(w, array), w.active(mask)
    flat = np.where(lanes, flat + block_offset * array.elements, 0)
    numbers = np.where(lanes, barriers.numbers(flat), 0)
    missing = lanes & (barriers.count[numbers] == 0)
    if missing.any():
        findings.note_not_set_up(w, site, barriers, numbers, missing)
        mask = lanes = lanes & ~missing
        if not mask.any():
            return numbers, False
    memory.count_accesses(w, site, array, flat, mask, False)
    memory.check_atomic_order(w, site, array, flat, lanes)
    memory.check_atomic(w, site, array, flat, lanes)
    return numbers, mask


def check_fence(w, site, array, numbers, lanes):
    """Note barriers of these lanes, at which TMA will count, whose initialisation is not fenced."""
    barriers = get_barriers(w, array)
    unknown = lanes & ~barriers.is_fenced[numbers]
    if unknown.any():
        findings.note_not_fenced(w, site, barriers, numbers, unknown)


def begin_copy(w, site, array, numbers, mask, copy):
    """Queue the lanes' boxes of a copy at these barriers, which count their bytes."""
    barriers, lanes = get_barriers(w, array), w.active(mask)
    site, within, tile = w.launch.sites[site], numbers % barriers.per_block, copy.array.name
    w.launch.events.note(w, mask, "copy", site.line, tile, site.array, within, copy.box_bytes)
    w.chunk.launch.clocks.pass_on(w, barriers.arriving, numbers, lanes)
    barriers.queue(copy, numbers[lanes])


# --- in a kernel's text --------------------------------------------------------------------------

# Its notes are the sites of barriers in a kernel.
MBARRIERS = Family(is_asynchronous=True, keeps_clocks=True, keeps_events=True, check=findings.check_use)


@dataclass(frozen=True)
class BarrierCall:
    """Call `(barriers, i, ...)`: what lanes run, the kind of access, and the meanings of further operands."""

    run: Callable
    kind: str
    operands: tuple[str, ...] = ()

    def translate(self, translator, node):
        check_argument_count(translator, node, 2 + len(self.operands))
        array, index, *others = node.args
        operands = barrier_operands(translator, node, array, index, self.kind)
        numbers = [integer_argument(translator, other, what).code for other, what in zip(others, self.operands)]
        return emit_call(translator, self.run, *operands, *numbers)


class Wait:
    """Call `(barriers, i, parity)` that waits."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 3)
        operands = barrier_operands(translator, node, *node.args[:2], "atomic")
        parity = integer_argument(translator, node.args[2], "the parity of a phase").code
        return emit_call(translator, wait, *operands, waiting_line(translator, node), parity, waits=True)


class ArriveAt:
    """Call `(barriers, i, cta)` that arrives at another block's barrier."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 3)
        operands = barrier_operands(translator, node, *node.args[:2], "atomic")
        cta = integer_argument(translator, node.args[2], "the number of a block in its cluster").code
        return emit_call(translator, arrive_at, *operands, node.lineno, cta)


def barrier_operands(translator, node, array, index, kind) -> tuple[str, str, str, str]:
    """Return the code of an access to a barrier: site, array, mask and indices."""
    subscript, found, indices = resolve_element(translator, node, array, index, ("shared",))
    if found.type.dtype != types.uint64 or found.type.others:
        translator.fail(
            node,
            f"barriers lie in one shared array of uint64, and `{translator.written(array)}` is "
            f"{describe(found.type)}: make them by `cuda.shared.array(1, uint64)`",
        )
    site = translator.site(subscript, found, kind)
    translator.program.use(MBARRIERS).add(int(site))  # also for instructions of other families
    return site, found.code, translator.mask, f"({indices},)"
