"""Clusters on lanes: neighbouring blocks along x that run together and access one another's shared memory.

(CUDA C++ Programming Guide, "Thread Block Clusters"; PTX ISA, `barrier.cluster`, `mapa`.)
`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
A `chunk` is the blocks that the simulator runs at the same time, and a `slot` the number of a block in it.
"""

from dataclasses import dataclass

import numpy as np

from labkit.ptx.clusters import findings
from labkit.ptx.translation import call_site, emit_call
from labkit.simulator import collectives, memory, numba_types
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.operands import (
    check_argument_count,
    drop_negative_indices,
    integer_argument,
    resolve_element,
    waiting_line,
)
from labkit.simulator.scheduler import ENDED, RETURNED
from labkit.simulator.seam import types
from labkit.simulator.values import describe
from labkit.simulator.warps import SLOT, START, THREAD
from labkit.trace import WARP_LANES


def rank(w):
    """Return the number of each lane's block within its cluster."""
    return (w.block % w.launch.cluster).astype(np.int32)


def block_offset(w, lanes, cta, line) -> np.ndarray:
    """Return the distance in blocks, within the chunk, to block `cta` of each lane's cluster."""
    cta = w.fill(cta).astype(np.int64)
    invalid = lanes & ((cta < 0) | (cta >= w.launch.cluster))
    if invalid.any():
        count = w.launch.cluster
        raise KernelError(
            f"a cluster has {count} block{'s' * (count != 1)} here, and there is no block {cta[invalid][0]} in it; ask "
            "for clusters with `@cuda.jit(cluster=...)`, and count their blocks from 0",
            line,
        )
    return cta - rank(w)


def multicast_targets(w, lanes, ctas, line) -> list[tuple[int, np.ndarray]]:
    """Return (block of the cluster, lanes whose mask of blocks has its bit) for each block that some lane names."""
    ctas = w.fill(ctas).astype(np.int64)
    beyond = lanes & (ctas >> w.launch.cluster != 0)
    if beyond.any():
        block_offset(w, beyond, np.int64(int(ctas[beyond][0]).bit_length() - 1), line)
    targets = [(cta, lanes & (ctas >> cta & 1 == 1)) for cta in range(w.launch.cluster)]
    return [(cta, lanes) for cta, lanes in targets if lanes.any()]


# --- the beginning and the end of a block ---------------------------------------------------------


class RemoteAccesses:
    """Time and site of each warp's last access to the shared memory of each other block of its cluster.

    The other block may have ended before, unless one of its warps is ordered after the access.
    """

    def __init__(self, chunk):
        self.chunk = chunk
        launch = chunk.launch
        self.time = np.zeros((len(chunk.blocks), launch.cluster, launch.warps_per_block), np.int64)  # 0: none
        self.site = np.zeros_like(self.time)

    def note(self, w, lanes, offset, site, until):
        """Record accesses of these lanes to blocks at a distance in the chunk; see `note_remote_access`."""
        lanes = lanes & (offset != 0)
        warps = w.thread[lanes] // WARP_LANES
        index = w.slot[lanes] + offset[lanes], rank(w)[lanes], warps
        self._check_begun(w, np.unique(np.stack(index)[:, self.time[index] == 0], axis=1), site)
        self.time[index] = w.launch.clocks.times[w.launch.clocks.of(w.block[lanes], warps)] + until
        self.site[index] = site

    def _check_begun(self, w, first_accesses, site):
        """Note first accesses, by their indices into `time`, of warps that do not know that the block has begun."""
        launch = w.launch
        for slot, number, warp in first_accesses.T.tolist():
            other = self.chunk.blocks[slot]
            block = other - other % launch.cluster + number
            if not launch.clocks.knows_block_began(block, warp, other):
                findings.note_not_begun(launch, site, block, warp, other)

    def check(self):
        """Note accesses to blocks that may have ended before; called when all blocks have ended."""
        launch = self.chunk.launch
        for slot, number, warp in np.argwhere(self.time).tolist():
            block = self.chunk.blocks[slot]
            other = block - block % launch.cluster + number
            time, site = self.time[slot, number, warp], self.site[slot, number, warp]
            if not launch.clocks.block_knows(block, other, warp, time):
                findings.note_ended(launch, int(site), other, warp, block)


def note_remote_access(w, lanes, offset, site, until=0):
    """Record that these lanes access the shared memory of blocks at a distance in the chunk.

    The access is complete when the warp's clock is `until` further on: 0 where it has just published its clock, 1 where
    the next synchronisation publishes it.
    """
    chunk = w.chunk
    if "remote accesses" not in chunk.kept:
        chunk.kept["remote accesses"] = RemoteAccesses(chunk)
        chunk.end_checks.append(chunk.kept["remote accesses"].check)
    chunk.kept["remote accesses"].note(w, lanes, offset, site, until)


# --- the barrier of a cluster --------------------------------------------------------------------


class ClusterSyncs:
    """Number of arrivals of each warp at its cluster's barrier, and of openings of each barrier, in a chunk."""

    def __init__(self, chunk):
        self.chunk = chunk
        self.cluster_size = chunk.launch.cluster
        self.arrivals = np.zeros((len(chunk.blocks), chunk.launch.warps_per_block), np.int64)
        self.opened = np.zeros(len(chunk.blocks) // self.cluster_size, np.int64)

    def open(self, clusters):
        """Open the barriers of these clusters at which all running warps have arrived."""
        clusters = np.unique(clusters)
        ended = np.isin(self.chunk.state, (RETURNED, ENDED))
        ended = np.logical_and.reduceat(ended, np.arange(0, ended.shape[1], WARP_LANES), axis=1)
        arrivals = np.where(ended, np.iinfo(np.int64).max, self.arrivals).reshape(len(self.opened), -1).min(axis=1)
        opening = clusters[(arrivals > self.opened)[clusters]]
        if opening.size:
            launch = self.chunk.launch
            blocks = np.array(self.chunk.blocks).reshape(-1, self.cluster_size)[opening]
            warps = launch.clocks.of(blocks[:, :, None], np.arange(launch.warps_per_block))
            launch.clocks.join_clocks(warps.reshape(len(opening), -1))
            self.opened[opening] += 1
            launch.version += 1

    def reason(self, lane: int) -> str:
        """Return what a waiting lane waits for."""
        return " for all warps of its cluster"


def sync(w, mask, call):
    """Let the warps of `mask` wait for all others of their clusters."""
    mask = collectives.keep_whole_warps(w, mask, call)
    if mask is False:
        return
    chunk = w.chunk
    syncs = chunk.kept.get("cluster syncs") or chunk.kept.setdefault("cluster syncs", ClusterSyncs(chunk))
    chunk.launch.clocks.publish(w, mask)
    chunk.note_returned(w)
    rows = np.flatnonzero(w.active(mask)[w.warps[:, START]])
    slots, warps = w.warps[rows, SLOT], w.warps[rows, THREAD] // WARP_LANES
    syncs.arrivals[slots, warps] += 1
    target, clusters = syncs.arrivals[slots, warps], slots // syncs.cluster_size
    chunk.launch.version += 1
    w.waits_for = syncs
    while True:
        syncs.open(clusters)
        is_closed = syncs.opened[clusters] < target
        if not is_closed.any():
            break
        waiting = np.zeros(len(w.warps), np.bool_)
        waiting[rows] = is_closed
        yield call[0], waiting.take(w.row), ()
    w.waits_for = None


# --- the shared memory of another block ----------------------------------------------------------


def load(w, site, array, mask, index, line, cta):
    """Return what the lanes of `mask` read from the array of block `cta` of each lane's cluster."""
    flat, mask = _remote_elements(w, site, array, mask, index, line, cta, True)
    if mask is False:
        return array.dtype.type(0)
    return memory.read(w, site, array, mask, flat)


def store(w, site, array, mask, index, line, cta, value):
    """Write to the array of block `cta` of each lane's cluster."""
    flat, mask = _remote_elements(w, site, array, mask, index, line, cta, False)
    if mask is not False:
        memory.write(w, site, array, mask, flat, w.fill(value))


def _remote_elements(w, site, array, mask, index, line, cta, is_load):
    """Return the indices of the lanes' elements in the memory of all blocks, and the lanes inside of the array.

    Counted as accesses to the block's own memory, although the network between SMs is slower.
    """
    mask = drop_negative_indices(w, site, array, mask, index)
    flat, mask = memory.flatten(w, site, array, mask, index) if mask is not False else (None, False)
    if mask is False:
        return flat, mask
    memory.count_accesses(w, site, array, flat, mask, is_load)
    w.chunk.sample(w, site, array, mask, flat)
    lanes = w.active(mask)
    offset = np.where(lanes, block_offset(w, lanes, cta, line), 0)
    note_remote_access(w, lanes, offset, site, until=1)
    return flat + offset * array.elements, mask


# --- in a kernel's text --------------------------------------------------------------------------

CLUSTERS = Family(keeps_clocks=True)


class Rank:
    """Call without arguments that returns a block's number within its cluster."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 0)
        return translator.temp(f"{translator.constant(rank)}(w)", types.int32)


class Sync:
    """Call without arguments that waits for the cluster."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 0)
        call = call_site(translator, node, waiting_line(translator, node))
        return emit_call(translator, sync, translator.mask, call, waits=True)


@dataclass(frozen=True)
class Load:
    """Call `(array, index, cta)` that returns an element, of one of `widths_bytes`, of another block."""

    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        check_argument_count(translator, node, 3)
        array, operands = _operands(translator, node, self.widths_bytes, "load")
        return translator.temp(f"{translator.constant(load)}(w, {operands})", array.type.dtype)


@dataclass(frozen=True)
class Store:
    """Call `(array, index, cta, value)` that writes an element of another block; see `Load`."""

    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        check_argument_count(translator, node, 4)
        array, operands = _operands(translator, node, self.widths_bytes, "store")
        value = translator.converted(translator.scalar(node.args[3], "a store"), array.type.dtype)
        return emit_call(translator, store, operands, value)


def _operands(translator, node, widths_bytes, kind):
    """Return the array, and the code of site, array, mask, indices, line and block."""
    subscript, array, indices = resolve_element(translator, node, *node.args[:2], ("shared",))
    if numba_types.dtype_of(array.type.dtype).itemsize not in widths_bytes:
        widths = " or ".join(map(str, widths_bytes))
        translator.fail(
            node,
            f"`{translator.written(node.func)}` moves {widths} bytes, which elements of {describe(array.type.dtype)} "
            "have not",
        )
    cta = integer_argument(translator, node.args[2], "the number of a block in its cluster").code
    site = translator.site(subscript, array, kind)
    return array, f"{site}, {array.code}, {translator.mask}, ({indices},), {node.lineno}, {cta}"
