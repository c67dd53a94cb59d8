"""Clusters: blocks that run side by side, neighbours along x, and reach one another's shared memory.

(CUDA C++ Programming Guide, "Thread Block Clusters"; PTX ISA, `barrier.cluster`, `mapa`.)
"""

from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.ptx.clusters import findings
from labkit.simulator import collectives, memory, numba_types
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.operands import check_count, element, nonnegative_lanes, waiting_line, whole_number
from labkit.simulator.scheduler import ENDED, RETURNED
from labkit.simulator.values import Value, describe
from labkit.simulator.warps import SLOT, START, THREAD
from labkit.trace import WARP_LANES


def rank(w):
    """The number of each lane's block within its cluster."""
    return (w.block % w.launch.cluster).astype(np.int32)


def away(w, lanes, cta, line) -> np.ndarray:
    """How many blocks on, in the chunk, block `cta` of each lane's cluster is."""
    cta = w.fill(cta).astype(np.int64)
    wrong = lanes & ((cta < 0) | (cta >= w.launch.cluster))
    if wrong.any():
        count = w.launch.cluster
        raise KernelError(
            f"a cluster has {count} block{'s' * (count != 1)} here, and there is no block {cta[wrong][0]} in it; ask "
            "for clusters with `@cuda.jit(cluster=...)`, and count their blocks from 0",
            line,
        )
    return cta - rank(w)


def chosen(w, lanes, ctas, line) -> list[tuple[int, np.ndarray]]:
    """(block of the cluster, the lanes that name it) for each bit of a mask of blocks."""
    ctas = w.fill(ctas).astype(np.int64)
    beyond = lanes & (ctas >> w.launch.cluster != 0)
    if beyond.any():
        away(w, beyond, np.int64(int(ctas[beyond][0]).bit_length() - 1), line)
    bits = [(cta, lanes & (ctas >> cta & 1 == 1)) for cta in range(w.launch.cluster)]
    return [(cta, mine) for cta, mine in bits if mine.any()]


# --- the beginning and the end of a block ---------------------------------------------------------


class Reached:
    """The last time that each warp reached the shared memory of each other block of its cluster, and at which site.

    Where no warp of that block learned of it, the block may have ended before.
    """

    def __init__(self, chunk):
        self.chunk = chunk
        launch = chunk.launch
        self.time = np.zeros((len(chunk.blocks), launch.cluster, launch.warps_per_block), np.int64)  # 0: none
        self.site = np.zeros_like(self.time)

    def note(self, w, lanes, away, site, until):
        """These lanes have just reached so many blocks on in the chunk; `until` as in `note_reached`."""
        lanes = lanes & (away != 0)
        warps = w.thread[lanes] // WARP_LANES
        place = w.slot[lanes] + away[lanes], rank(w)[lanes], warps
        self._check_begun(w, np.unique(np.stack(place)[:, self.time[place] == 0], axis=1), site)
        self.time[place] = w.launch.clocks.times[w.launch.clocks.of(w.block[lanes], warps)] + until
        self.site[place] = site

    def _check_begun(self, w, places, site):
        """Warps, by their places in `time`, reach a block for the first time: they must have heard of it before."""
        launch = w.launch
        for slot, number, warp in places.T.tolist():
            other = self.chunk.blocks[slot]
            block = other - other % launch.cluster + number
            if not launch.clocks.knows_block_began(block, warp, other):
                findings.may_not_have_begun(launch, site, block, warp, other)

    def check(self):
        """All blocks have ended: each must have learned before of all that reached it."""
        launch = self.chunk.launch
        for slot, number, warp in np.argwhere(self.time).tolist():
            block = self.chunk.blocks[slot]
            other = block - block % launch.cluster + number
            time, site = self.time[slot, number, warp], self.site[slot, number, warp]
            if not launch.clocks.block_knows(block, other, warp, time):
                findings.may_have_ended(launch, int(site), other, warp, block)


def note_reached(w, lanes, away, site, until=0):
    """These lanes have reached the shared memory of other blocks, so many on in the chunk.

    What a warp does now counts as done when its clock is `until` further on: 0 where it has just told others by what it
    did, 1 where it does so by what comes next.
    """
    chunk = w.chunk
    if "reached" not in chunk.kept:
        reached = chunk.kept["reached"] = Reached(chunk)
        chunk.at_end.append(reached.check)
    chunk.kept["reached"].note(w, lanes, away, site, until)


# --- the barrier of a cluster --------------------------------------------------------------------


class ClusterSyncs:
    """How often each warp of a chunk has come to the barrier of its cluster, and how often each has opened."""

    def __init__(self, chunk):
        self.chunk = chunk
        self.each = chunk.launch.cluster
        self.came = np.zeros((len(chunk.blocks), chunk.launch.warps_per_block), np.int64)
        self.opened = np.zeros(len(chunk.blocks) // self.each, np.int64)

    def open(self, clusters):
        """Opens the barriers of these clusters where all warps have come that are still there."""
        clusters = np.unique(clusters)
        gone = np.isin(self.chunk.state, (RETURNED, ENDED))
        gone = np.logical_and.reduceat(gone, np.arange(0, gone.shape[1], WARP_LANES), axis=1)
        came = np.where(gone, np.iinfo(np.int64).max, self.came).reshape(len(self.opened), -1).min(axis=1)
        now = clusters[(came > self.opened)[clusters]]
        if now.size:
            launch = self.chunk.launch
            blocks = np.array(self.chunk.blocks).reshape(-1, self.each)[now]
            warps = launch.clocks.of(blocks[:, :, None], np.arange(launch.warps_per_block))
            launch.clocks.meet(warps.reshape(len(now), -1))
            self.opened[now] += 1
            launch.version += 1

    def reason(self, lane: int) -> str:
        """What those wait for who wait here."""
        return " for all warps of its cluster"


def sync(w, mask, call):
    """The warps of `mask` wait for all others of their clusters."""
    mask = collectives.whole_warps(w, mask, call)
    if mask is False:
        return
    chunk = w.chunk
    syncs = chunk.kept.get("cluster syncs") or chunk.kept.setdefault("cluster syncs", ClusterSyncs(chunk))
    chunk.launch.clocks.publish(w, mask)
    chunk.note_returned(w)
    rows = np.flatnonzero(w.active(mask)[w.warps[:, START]])
    slots, warps = w.warps[rows, SLOT], w.warps[rows, THREAD] // WARP_LANES
    syncs.came[slots, warps] += 1
    due, clusters = syncs.came[slots, warps], slots // syncs.each
    chunk.launch.version += 1
    w.waits_for = syncs
    while True:
        syncs.open(clusters)
        left = syncs.opened[clusters] < due
        if not left.any():
            break
        waiting = np.zeros(len(w.warps), np.bool_)
        waiting[rows] = left
        yield call[0], waiting.take(w.row), ()
    w.waits_for = None


# --- the shared memory of another block ----------------------------------------------------------


def load(w, site, array, mask, index, line, cta):
    """What the lanes of `mask` read of the array of block `cta` of each lane's cluster."""
    flat, mask = _there(w, site, array, mask, index, line, cta, True)
    if mask is False:
        return array.dtype.type(0)
    return memory.read(w, site, array, mask, flat)


def store(w, site, array, mask, index, line, cta, value):
    """Writes to the array of block `cta` of each lane's cluster."""
    flat, mask = _there(w, site, array, mask, index, line, cta, False)
    if mask is not False:
        memory.write(w, site, array, mask, flat, w.fill(value))


def _there(w, site, array, mask, index, line, cta, is_load):
    """Where the lanes' elements lie, in the memory of all blocks, and the lanes whose index is inside the array.

    Counted as an access to the block's own memory; over the network between SMs it takes longer.
    """
    mask = nonnegative_lanes(w, site, array, mask, index)
    flat, mask = memory.flatten(w, site, array, mask, index) if mask is not False else (None, False)
    if mask is False:
        return flat, mask
    memory.count_accesses(w, site, array, flat, mask, is_load)
    w.chunk.sample(w, site, array, mask, flat)
    lanes = w.active(mask)
    on = np.where(lanes, away(w, lanes, cta, line), 0)
    note_reached(w, lanes, on, site, until=1)
    return flat + on * array.elements, mask


# --- in a kernel's text --------------------------------------------------------------------------

CLUSTERS = Family(keeps_clocks=True)


class Rank:
    """A function without arguments that gives a block's number within its cluster."""

    def translate(self, translator, node):
        check_count(translator, node, 0)
        return translator.temp(f"{translator.constant(rank)}(w)", types.int32)


class Sync:
    """A function without arguments that waits for the cluster."""

    def translate(self, translator, node):
        check_count(translator, node, 0)
        line = waiting_line(translator, node)
        call = f"({line}, {node.col_offset}, {translator.written(node.func)!r})"
        translator.emit(f"yield from {translator.constant(sync)}(w, {translator.mask}, {call})")
        return Value("None", types.none)


@dataclass(frozen=True)
class Load:
    """A function `(array, index, cta)` that gives an element of another block, of one of `widths_bytes`."""

    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        check_count(translator, node, 3)
        array, operands = _operands(translator, node, self.widths_bytes, "load")
        return translator.temp(f"{translator.constant(load)}(w, {operands})", array.type.dtype)


@dataclass(frozen=True)
class Store:
    """A function `(array, index, cta, value)` that writes an element of another block; as `Load`."""

    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        check_count(translator, node, 4)
        array, operands = _operands(translator, node, self.widths_bytes, "store")
        value = translator.converted(translator.scalar(node.args[3], "a store"), array.type.dtype)
        translator.emit(f"{translator.constant(store)}(w, {operands}, {value})")
        return Value("None", types.none)


def _operands(translator, node, widths_bytes, kind):
    """The array, and the code of the site, the array, the mask, the indices, the line and the block."""
    subscript, array, indices = element(translator, node, *node.args[:2], ("shared",))
    if numba_types.dtype_of(array.type.dtype).itemsize not in widths_bytes:
        widths = " or ".join(map(str, widths_bytes))
        translator.fail(
            node,
            f"`{translator.written(node.func)}` moves {widths} bytes, which elements of {describe(array.type.dtype)} "
            "have not",
        )
    cta = whole_number(translator, node.args[2], "the number of a block in its cluster").code
    site = translator.site(subscript, array, kind)
    return array, f"{site}, {array.code}, {translator.mask}, ({indices},), {node.lineno}, {cta}"
