"""Barriers in shared memory on lanes: who has arrived at each, how many bytes have come, and who waits.

The copies that count on a barrier come as late as they may: when all threads have arrived and somebody waits for
the phase. So whoever uses what they bring without waiting is found out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.ptx.clusters import on_lanes as clusters
from labkit.ptx.mbarriers import findings
from labkit.simulator import memory
from labkit.simulator.family import Family
from labkit.simulator.operands import check_count, element, waiting_line, whole_number
from labkit.simulator.values import Value, describe


class Mbarriers:
    """The barriers of one shared array: those of each block of a chunk, one block after the other."""

    def __init__(self, array, chunk):
        self.array, self.each = array, int(array.size_value)
        size = self.each * len(chunk.blocks)
        self.count = np.zeros(size, np.int64)  # arrivals of a phase; 0: not set up
        self.is_fenced = np.zeros(size, np.bool_)  # since it was set up
        self.pending = np.zeros(size, np.int64)
        self.expected = np.zeros(size, np.int64)  # bytes
        self.came = np.zeros(size, np.int64)  # bytes
        self.phase = np.zeros(size, np.int64)  # the one that is not complete
        self.arriving = chunk.launch.clocks.barrier_clocks(chunk, size)  # what all who have come know
        self.complete = chunk.launch.clocks.barrier_clocks(chunk, size)  # what those know who came in a complete phase
        self.copies: dict[int, list] = {}  # (copy, which of its boxes), not landed yet

    def places(self, flat):
        """The numbers of the barriers that lie at `flat` in the array's memory."""
        slot, within = np.divmod(flat, self.array.elements)
        return slot * self.each + within - self.array.offset

    def arrive(self, places, expected):
        """One arrival at each of these places, which makes the phase expect more bytes; returns where it is one too
        many.
        """
        arrivals = np.bincount(places)
        here = np.flatnonzero(arrivals)
        too_many = here[arrivals[here] > self.pending[here]]
        self.pending[here] = np.maximum(self.pending[here] - arrivals[here], 0)
        np.add.at(self.expected, places, expected)
        self._complete(here)
        return too_many

    def queue(self, copy, places):
        """The boxes of a copy, each of which counts its bytes at one of these places."""
        for box, at in enumerate(places.tolist()):
            self.copies.setdefault(at, []).append((copy, box))

    def land(self, places):
        """Lets all copies land that count on the barriers at these places, and have not landed."""
        boxes = {}
        for at in places.tolist():
            for copy, box in self.copies.pop(at, ()):
                boxes.setdefault(copy, []).append(box)
                self.came[at] += copy.box_bytes
        for copy, landing in boxes.items():
            copy.land(np.array(landing))
        if boxes:
            self._complete(places)

    def _complete(self, places):
        """Begins the next phase where nothing is missing in this one."""
        done = places[(self.pending[places] == 0) & (self.expected[places] == self.came[places])]
        self.phase[done] += 1
        self.pending[done] = self.count[done]
        self.expected[done] = self.came[done] = 0
        self.complete[:, done] = self.arriving[:, done]

    def is_waiting(self, places, parity):
        """Whether the phase of this parity is not complete, for each pair of a place and a parity."""
        return self.phase[places] & 1 == parity


def of(w, array) -> Mbarriers:
    """The barriers that lie in a shared array."""
    chunk = w.chunk
    known = chunk.kept.setdefault("mbarriers", {})
    if array.root not in known:
        made = known[array.root] = Mbarriers(array.root, chunk)
        chunk.at_end.append(lambda: _check_end(chunk.launch, made))
    return known[array.root]


def _check_end(launch, barriers):
    for place, copies in barriers.copies.items():
        for copy, _ in copies:
            findings.never_waited_for(launch, barriers, place, copy.site)


# --- on lanes ------------------------------------------------------------------------------------


def init(w, site, array, mask, index, count):
    """Sets barriers up for phases of `count` arrivals."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return
    barriers, lanes = of(w, array), w.active(mask)
    memory.count_accesses(w, site, array, flat, mask, False)
    memory.write(w, site, array, mask, flat, w.fill(count).astype(np.uint64))
    places = barriers.places(flat)
    here, counts = places[lanes], w.fill(count)[lanes]
    again = lanes & (barriers.count[places] > 0)
    again[lanes] |= np.bincount(here)[here] > 1
    if again.any():
        findings.set_up_again(w, site, barriers, places, again)
    if (counts < 1).any():
        findings.no_arrivals(w, site, barriers, places, lanes & (w.fill(count) < 1))
        counts = np.maximum(counts, 1)
    barriers.count[here] = barriers.pending[here] = counts
    barriers.is_fenced[here] = False
    _note(w, "init", site, mask, places, barriers, count)
    barriers.phase[here] = barriers.expected[here] = barriers.came[here] = 0
    w.chunk.launch.version += 1


def fence_init(w, mask):
    """`mbarrier_init_fence`: what the blocks of these lanes set up is known to the copy engine."""
    slots = np.unique(w.slot[w.active(mask)])
    for barriers in w.chunk.kept.get("mbarriers", {}).values():
        barriers.is_fenced.reshape(-1, barriers.each)[slots] = True


def arrive(w, site, array, mask, index, expected=0):
    """Arrivals, each of which makes the phase expect that many bytes of copies."""
    places, mask = ready(w, site, array, mask, index)
    if mask is not False:
        _arrive(w, site, array, places, mask, expected)


def arrive_at(w, site, array, mask, index, line, cta):
    """Arrivals at the same barrier of block `cta` of each lane's cluster."""
    w.chunk.launch.clocks.publish(w, mask)
    away = clusters.away(w, w.active(mask), cta, line)
    places, mask = ready(w, site, array, mask, index, away)
    if mask is not False:
        _arrive(w, site, array, places, mask, 0)
        clusters.note_reached(w, w.active(mask), away, site)


def _arrive(w, site, array, places, mask, expected):
    barriers, lanes = of(w, array), w.active(mask)
    _note(w, "arrive", site, mask, places, barriers, expected)
    w.chunk.launch.clocks.pass_on(w, barriers.arriving, places, lanes)
    too_many = barriers.arrive(places[lanes], w.fill(expected)[lanes])
    if too_many.size:
        findings.too_many(w, site, barriers, places, lanes & np.isin(places, too_many))
    w.chunk.launch.version += 1


def wait(w, site, array, mask, index, line, parity):
    """Waits, until the phase of that parity is complete for all of these lanes."""
    places, mask = ready(w, site, array, mask, index)
    if mask is False:
        return
    barriers, lanes, parity = of(w, array), w.active(mask), w.fill(parity)
    none = lanes & (parity != 0) & (parity != 1)
    if none.any():
        findings.no_parity(w, site, barriers, places, none, parity)
        lanes = lanes & ~none
    phase = barriers.phase[places] - ~barriers.is_waiting(places, parity)
    _note(w, "wait", site, lanes, places, barriers, phase)
    while True:
        left = lanes & barriers.is_waiting(places, parity)
        if left.any():
            needed = np.unique(places[left])
            barriers.land(needed[barriers.pending[needed] == 0])
            left = lanes & barriers.is_waiting(places, parity)
        if not left.any():
            break
        w.waits_for = Waiting(barriers, places, parity)
        yield line, left, ()
    w.waits_for = None
    w.chunk.launch.clocks.learn(w, barriers.complete, places, lanes)


def _note(w, kind, site, mask, places, barriers, amount):
    """Keeps what the lanes of `mask` do at their barriers."""
    site, within = w.launch.sites[site], places % barriers.each
    w.launch.events.note(w, mask, kind, site.line, barriers=site.array, place=within, amount=amount)


@dataclass(frozen=True)
class Waiting:
    """What the lanes of a warp set wait for: the phase of that parity of a barrier each."""

    barriers: Mbarriers
    places: np.ndarray
    parity: np.ndarray

    def reason(self, lane: int) -> str:
        """What the wait of a lane lacks."""
        return findings.what_is_missing(self.barriers, int(self.places[lane]), int(self.parity[lane]))


def ready(w, site, array, mask, index, away=0):
    """The lanes' barriers, `away` blocks on in the chunk, and the lanes whose barrier has been set up."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    barriers, lanes = of(w, array), w.active(mask)
    flat = np.where(lanes, flat + away * array.elements, 0)
    places = np.where(lanes, barriers.places(flat), 0)
    missing = lanes & (barriers.count[places] == 0)
    if missing.any():
        findings.not_set_up(w, site, barriers, places, missing)
        mask = lanes = lanes & ~missing
        if not mask.any():
            return places, False
    memory.count_accesses(w, site, array, flat, mask, False)
    memory.watch_atomic(w, site, array, flat, lanes)
    return places, mask


def check_fence(w, site, array, places, lanes):
    """The copy engine is to count at the barriers of these lanes: it must know that they are set up."""
    barriers = of(w, array)
    unknown = lanes & ~barriers.is_fenced[places]
    if unknown.any():
        findings.not_fenced(w, site, barriers, places, unknown)


def begin_copy(w, site, array, places, mask, copy):
    """The lanes' boxes of a copy will count their bytes at these barriers."""
    barriers, lanes = of(w, array), w.active(mask)
    site, within, tile = w.launch.sites[site], places % barriers.each, copy.array.name
    w.launch.events.note(w, mask, "copy", site.line, tile, site.array, within, copy.box_bytes)
    w.chunk.launch.clocks.pass_on(w, barriers.arriving, places, lanes)
    barriers.queue(copy, places[lanes])


# --- in a kernel's text --------------------------------------------------------------------------

# Its notes are the sites at which a kernel uses barriers.
MBARRIERS = Family(
    is_asynchronous=True,
    keeps_clocks=True,
    keeps_events=True,
    check=findings.check_use,
)


@dataclass(frozen=True)
class OnBarrier:
    """An instruction `(barriers, i, ...)`: what lanes run, the kind of access, and what its further operands are."""

    run: Callable
    kind: str
    operands: tuple[str, ...] = ()

    def translate(self, translator, node):
        check_count(translator, node, 2 + len(self.operands))
        array, index, *others = node.args
        operands = ["w", *barrier(translator, node, array, index, self.kind)]
        operands += [whole_number(translator, other, what).code for other, what in zip(others, self.operands)]
        translator.emit(f"{translator.constant(self.run)}({', '.join(operands)})")
        return Value("None", types.none)


class Wait:
    """An instruction `(barriers, i, parity)` that waits."""

    def translate(self, translator, node):
        check_count(translator, node, 3)
        place = barrier(translator, node, *node.args[:2], "atomic")
        parity = whole_number(translator, node.args[2], "the parity of a phase").code
        line = waiting_line(translator, node)
        translator.emit(f"yield from {translator.constant(wait)}(w, {', '.join(place)}, {line}, {parity})")
        return Value("None", types.none)


class ArriveAt:
    """An instruction `(barriers, i, cta)` that arrives at another block's barrier."""

    def translate(self, translator, node):
        check_count(translator, node, 3)
        place = barrier(translator, node, *node.args[:2], "atomic")
        cta = whole_number(translator, node.args[2], "the number of a block in its cluster").code
        translator.emit(f"{translator.constant(arrive_at)}(w, {', '.join(place)}, {node.lineno}, {cta})")
        return Value("None", types.none)


def barrier(translator, node, array, index, kind) -> tuple[str, str, str, str]:
    """The site of an access to a barrier, the array, the mask and the indices, as code."""
    subscript, found, indices = element(translator, node, array, index, ("shared",))
    if found.type.dtype != types.uint64 or found.type.others:
        translator.fail(
            node,
            f"barriers lie in one shared array of uint64, and `{translator.written(array)}` is "
            f"{describe(found.type)}: make them by `cuda.shared.array(1, uint64)`",
        )
    site = translator.site(subscript, found, kind)
    translator.program.use(MBARRIERS).add(int(site))  # whichever family's instruction names the barrier
    return site, found.code, translator.mask, f"({indices},)"
