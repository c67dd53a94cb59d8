"""Clusters: blocks that run side by side, neighbours along x, and reach one another's shared memory.

(CUDA C++ Programming Guide, "Thread Block Clusters"; PTX ISA, `barrier.cluster`, `mapa`.)
"""

import numpy as np
from numba import types

from labkit.simulator import collectives
from labkit.simulator.checks import mbarrier_findings
from labkit.simulator.errors import KernelError
from labkit.simulator.operands import check_count, waiting_line
from labkit.simulator.scheduler import ENDED, RETURNED
from labkit.simulator.translator.values import Value
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


# --- the end of a block ---------------------------------------------------------------------------


class Reached:
    """The last arrival of each warp at barriers of each other block of its cluster, by its time and site.

    Where no warp of that block learned of it, the block may have ended before.
    """

    def __init__(self, chunk):
        self.chunk = chunk
        launch = chunk.launch
        self.time = np.zeros((len(chunk.blocks), launch.cluster, launch.warps_per_block), np.int64)  # 0: none
        self.site = np.zeros_like(self.time)

    def note(self, w, lanes, away, site):
        """These lanes have just arrived, so many blocks on in the chunk."""
        lanes = lanes & (away != 0)
        warps = w.thread[lanes] // WARP_LANES
        place = w.slot[lanes] + away[lanes], rank(w)[lanes], warps
        self.time[place] = w.launch.clocks.times[w.launch.clocks.of(w.block[lanes], warps)]
        self.site[place] = site

    def check(self):
        """All blocks have ended: each must have learned before of all that reached it."""
        launch = self.chunk.launch
        for slot, number, warp in np.argwhere(self.time).tolist():
            block = self.chunk.blocks[slot]
            other = block - block % launch.cluster + number
            time, site = self.time[slot, number, warp], self.site[slot, number, warp]
            if not launch.clocks.block_knows(block, other, warp, time):
                mbarrier_findings.may_have_ended(launch, int(site), other, warp, block)


def note_arrivals(w, lanes, away, site):
    """These lanes have arrived at barriers of other blocks, so many on in the chunk."""
    chunk = w.chunk
    if "reached" not in chunk.kept:
        reached = chunk.kept["reached"] = Reached(chunk)
        chunk.at_end.append(reached.check)
    chunk.kept["reached"].note(w, lanes, away, site)


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


# --- in a kernel's text --------------------------------------------------------------------------


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
        translator.program.syncs_clusters = True
        call = f"({line}, {node.col_offset}, {translator.written(node.func)!r})"
        translator.emit(f"yield from {translator.constant(sync)}(w, {translator.mask}, {call})")
        return Value("None", types.none)
