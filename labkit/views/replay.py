"""Sampled accesses of a run, sent through its first cache: the pieces loaded and evicted."""

from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Int64

from labkit.loops import LoopTrace
from labkit.machine.gpus import CacheLevel, gpu
from labkit.simulator.caches import Cache, l1_bytes, lines_in, make_cache, make_l1, touch
from labkit.trace import SECTOR_BYTES, ArrayInfo, Trace


@dataclass(frozen=True)
class Replay:
    """Accesses that went through a cache, one row per step: a warp's load, or one access of a loop.

    `array` counts in `arrays`; `elements` holds the flat index (C order) that each lane read (-1: it took no part),
    `pieces` the piece of memory that it is in, counted from byte 0. A piece is what moves at once: a GPU's sector,
    a CPU's line. `moves` has a row for each that came in or was pushed out: step, piece, and 1 for in, 0 for out.
    `block` counts in `blocks`; each of the `copies` SMs that run one has a cache of its own.
    """

    arrays: tuple[ArrayInfo, ...]
    blocks: tuple[tuple[int, int, int], ...]
    cache: str
    copies: int
    piece_bytes: int
    array: Int64[np.ndarray, " steps"]
    line: Int64[np.ndarray, " steps"]
    block: Int64[np.ndarray, " steps"]
    warp: Int64[np.ndarray, " steps"]
    elements: Int64[np.ndarray, "steps lanes"]
    pieces: Int64[np.ndarray, "steps lanes"]
    moves: Int64[np.ndarray, "moves 3"]
    left_out: int

    @property
    def asked(self) -> int:
        """Pieces asked for, each once per step."""
        return int((np.diff(np.sort(self.pieces, axis=1), axis=1, prepend=-1) != 0).sum())

    @property
    def misses(self) -> int:
        return int(self.moves[:, 2].sum())

    @property
    def hit_rate(self) -> float:
        return 1 - self.misses / self.asked if self.asked else 0.0


def replay_launch(trace: Trace, steps: int = 20_000) -> Replay:
    """Send the first sampled loads of global arrays through the empty L1 of the SM that each block ran on.

    Loads that bypass L1 are left out.
    """
    device, threads = gpu(trace.gpu), prod(trace.block)
    sites = [counters.site for counters in trace.sites]
    in_l1 = [site.space == "global" and site.kind == "load" for site in sites]
    loads = [i for i, counted in enumerate(trace.sites) if in_l1[i] and not counted.past_l1]
    rows = np.flatnonzero(np.isin(trace.samples.site, loads))
    sampled = set(trace.samples.site[rows].tolist())
    arrays = tuple(trace.array(name) for name in dict.fromkeys(sites[i].array for i in loads if i in sampled))
    shown_rows = rows[:steps]
    number_of_array = {info.name: i for i, info in enumerate(arrays)}
    array = np.array([number_of_array[sites[site].array] for site in trace.samples.site[shown_rows]], np.int64)
    elements = trace.samples.index[shown_rows].astype(np.int64)
    numbers = [x + trace.grid[0] * (y + trace.grid[1] * z) for x, y, z in trace.samples.blocks]
    sms, copy_of_block = np.unique(np.array(numbers, np.int64) % device.sms, return_inverse=True)
    block = trace.samples.block[shown_rows]
    l1 = make_l1(device, threads, trace.shared_bytes, copies=len(sms))
    pieces = _pieces(trace, sites, trace.samples.site[shown_rows], elements, SECTOR_BYTES)
    return Replay(
        arrays=arrays,
        blocks=trace.samples.blocks,
        cache=f"{_size(l1_bytes(device, threads, trace.shared_bytes))} L1",
        copies=len(sms),
        piece_bytes=SECTOR_BYTES,
        array=array,
        line=trace.samples.line[shown_rows],
        block=block,
        warp=trace.samples.warp[shown_rows],
        elements=elements,
        pieces=pieces,
        moves=_moves(pieces, l1, copy_of_block[block]),
        left_out=len(rows) - len(shown_rows),
    )


def replay_loop(trace: LoopTrace, level: CacheLevel, steps: int = 20_000) -> Replay:
    """Send the first accesses of a loop through one level of a CPU's cache; stores allocate."""
    sites = [counters.site for counters in trace.sites]
    number_of_array = {info.name: i for i, info in enumerate(trace.arrays)}
    site = trace.samples.site[:steps]
    array = np.array([number_of_array[site.array] for site in sites], np.int64)[site]
    elements = trace.samples.index[:steps, None].astype(np.int64)
    cache = make_cache(level.bytes, level.ways, level.line_bytes, level.line_bytes)
    zeros = np.zeros(len(array), np.int64)
    pieces = _pieces(trace, sites, site, elements, level.line_bytes)
    return Replay(
        arrays=trace.arrays,
        blocks=((0, 0, 0),),
        cache=f"{_size(level.bytes)} {level.name}",
        copies=1,
        piece_bytes=level.line_bytes,
        array=array,
        line=np.array([site.line for site in sites], np.int64)[site],
        block=zeros,
        warp=zeros,
        elements=elements,
        pieces=pieces,
        moves=_moves(pieces, cache, zeros),
        left_out=trace.counters.accesses - len(array),
    )


def _pieces(trace, sites, of_step, elements, piece_bytes):
    pieces = np.empty_like(elements)
    for number in np.unique(of_step):
        site, steps = sites[number], of_step == number
        pieces[steps] = trace.array(site.array).pieces(elements[steps], piece_bytes, site.offset_bytes)
    return pieces


def _moves(pieces, cache: Cache, copies):
    moves = []
    cached = set()  # pieces, each with the copy of the cache that it is in
    for step, (copy, lanes) in enumerate(zip(copies.tolist(), pieces, strict=True)):
        for piece in dict.fromkeys(lanes[lanes >= 0].tolist()):
            evicted = _evicted_pieces(cache, copy, piece)
            hit, _ = touch(cache, copy, piece, False)
            if hit:
                continue
            for old in (p for p in evicted if (copy, p) in cached):
                cached.remove((copy, old))
                moves.append((step, old, 0))
            cached.add((copy, piece))
            moves.append((step, piece, 1))
    return np.array(moves, np.int64).reshape(-1, 3)


def _evicted_pieces(cache, copy, piece):
    """Return the pieces of the line that is evicted if `piece`'s line is not in the cache."""
    line = piece // cache.sectors_per_line
    ways = lines_in(cache, copy, line)
    if line in ways:
        return range(0)
    first = int(ways[-1]) * cache.sectors_per_line
    return range(first, first + cache.sectors_per_line)


def _size(count):
    return f"{count // 1024} KB" if count >= 1024 else f"{count}-byte"
