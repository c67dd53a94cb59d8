"""Asynchronous copies from global to shared memory.

The bytes are read when a copy begins, and are there when its thread has waited for it: as late as a GPU may bring
them. From then on they are the thread's own writes, which other threads may read behind a barrier. Already the
beginning counts as a write where others have read, for a GPU may bring the bytes at once.
"""

from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator import memory, numba_types
from labkit.simulator.checks.in_flight import Operation, PendingRead
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.groups import Groups
from labkit.simulator.lanes import intersect
from labkit.simulator.operands import (
    check_count,
    element,
    fixed_number,
    locate_vectors,
    nonnegative_lanes,
    site_numbers,
    whole_number,
)
from labkit.simulator.slices import parts_of
from labkit.simulator.values import Value, describe

CURE = (
    "Close its group with `ptx.cp_async_commit()`, wait for that with `ptx.cp_async_wait(n)`, where n counts this "
    "thread's newer groups, then for the other threads with `cuda.syncthreads()`."
)
COPIES = Family(is_asynchronous=True, notes_copies=True)


@dataclass(frozen=True)
class Copy:
    """A function `(tile, index, source, source_index, width_bytes, valid_bytes)` that begins a copy."""

    widths_bytes: tuple[int, ...]
    past_l1: tuple[int, ...]

    def translate(self, translator, node):
        check_count(translator, node, 6)
        to, tile, index = element(translator, node, *node.args[:2], ("shared",))
        of, source, source_index = element(translator, node, *node.args[2:4], ("global",))
        width_bytes = fixed_number(translator, node, node.args[4], "the width of a copy")
        valid = whole_number(translator, node.args[5], "how many bytes of a copy are read")
        dtype, other = tile.type.dtype, source.type.dtype
        if dtype != other:
            translator.fail(
                node, f"a copy needs two arrays of one dtype, not of {describe(other)} and {describe(dtype)}"
            )
        itemsize = numba_types.dtype_of(dtype).itemsize
        if width_bytes not in self.widths_bytes or width_bytes % itemsize:
            widths = ", ".join(str(n) for n in self.widths_bytes if n % itemsize == 0)
            translator.fail(node, f"a copy has {widths} bytes of {describe(dtype)}, not {width_bytes}")
        elements = width_bytes // itemsize
        read = translator.site(of, source, "load", elements)
        written = translator.site(to, tile, "store", elements)
        if width_bytes in self.past_l1:
            translator.program.past_l1 |= {*site_numbers(translator, read)}
        translator.program.families[COPIES].update(site_numbers(translator, written))
        run = translator.constant(begin)
        translator.emit(
            f"{run}(w, {translator.mask}, {width_bytes}, {valid.code}, ({written}, {tile.code}, ({index},)), "
            f"({read}, {source.code}, ({source_index},)))"
        )
        return Value("None", types.none)


class Commit:
    """A function without arguments that makes a group of the copies that each thread began."""

    def translate(self, translator, node):
        check_count(translator, node, 0)
        translator.emit(f"{translator.constant(commit)}(w, {translator.mask})")
        return Value("None", types.none)


class Wait:
    """A function `(pending)` that waits for all of a thread's groups but the newest."""

    def translate(self, translator, node):
        check_count(translator, node, 1)
        pending = fixed_number(translator, node, node.args[0], "how many groups may be under way")
        if pending < 0:
            translator.fail(node, f"at least no group is under way: {pending} is less than that")
        translator.emit(f"{translator.constant(wait)}(w, {translator.mask}, {pending})")
        return Value("None", types.none)


@dataclass(frozen=True)
class _Begun:
    """A copy under way: its place in a shared array, and for each of its elements the lanes' values."""

    site: int
    number: int
    array: object
    flat: np.ndarray
    values: list[np.ndarray]
    source: PendingRead | None


def begin(w, mask, width_bytes, valid, to, source):
    """The lanes of `mask` begin a copy each; `to` and `source` are places: a site, an array and the indices."""
    valid = w.fill(valid).astype(np.int64)
    wrong = w.active(mask) & ((valid < 0) | (valid > width_bytes))
    if wrong.any():
        raise KernelError(
            f"a copy of {width_bytes} bytes reads 0 to {width_bytes} of them, not {valid[wrong][0]}",
            w.launch.sites[next(_places(w, mask, to))[0][0]].line,
        )
    for one, own in _places(w, mask, to):
        for other, lanes in _places(w, own, source):
            _begin(w, lanes, width_bytes, valid, *one, *other)


def _places(w, mask, place):
    """The place in each array that it may be in, and the lanes whose place that is."""
    site, array, index = place
    for one, lanes in parts_of(array):
        own = mask if lanes is None else intersect(mask, lanes)
        if own is not False:
            yield (site[one.name] if isinstance(site, dict) else site, one, index), own


def _begin(w, mask, width_bytes, valid, site, tile, index, source_site, source, source_index):
    elements = width_bytes // tile.itemsize
    mask = nonnegative_lanes(w, site, tile, mask, index)
    if mask is False:
        return
    flat, mask = locate_vectors(w, site, tile, mask, width_bytes, index)
    if mask is False:
        return
    values, read = _bytes_of(w, source_site, source, mask, width_bytes, source_index, valid)
    memory.count_accesses(w, site, tile, flat, mask, False, elements)
    w.chunk.sample(w, site, tile, mask, flat)
    lanes = w.active(mask)
    last = _last_at(tile, flat, lanes)
    for i in range(elements):
        memory.watch_write(
            w, site, tile, mask, flat + i, ~w.all_lanes, memory.equal_with_nan(values[i].take(last), values[i])
        )
    places = (flat[lanes][:, None] + np.arange(elements)).reshape(-1)
    number = tile.in_flight.begin(Operation(site, "the copy", CURE), places, w, np.flatnonzero(lanes))
    _groups(w).begin(_Begun(site, number, tile, flat, values, read), lanes)


def _last_at(array, flat, lanes):
    """The last of these lanes to copy to each lane's place, itself if it is the only one."""
    last = np.empty(array.data.size, np.int64)
    last[flat[lanes]] = np.flatnonzero(lanes)
    return np.where(lanes, last.take(flat), 0)


def _bytes_of(w, site, source, mask, width_bytes, index, valid):
    """What the lanes read: an array of values for each element, with zeros beyond the `valid` bytes; and where, if
    the kernel writes there as well.
    """
    elements = width_bytes // source.itemsize
    values = np.zeros((w.lanes, elements), source.dtype)
    reading, used = intersect(mask, valid > 0), -(-valid // source.itemsize)
    if reading is not False:
        flat, reading = locate_vectors(w, site, source, reading, width_bytes, index, used)
    if reading is False:
        return list(values.T), None
    memory.count_accesses(w, site, source, flat, reading, True, elements)
    w.chunk.sample(w, site, source, reading, flat)
    for i in range(elements):
        some = intersect(reading, used > i)
        if some is not False:
            lanes = w.active(some)
            values[lanes, i] = memory.read(w, site, source, some, np.where(lanes, flat + i, 0))[lanes]
    kept = np.arange(width_bytes) < valid[:, None]
    read = None
    if source.in_flight is not None:
        lanes, i = np.nonzero((np.arange(elements) < used[:, None]) & w.active(reading)[:, None])
        operation = Operation(site, "the copy", CURE, reads=True)
        number = source.in_flight.begin(operation, flat[lanes] + i, w, lanes)
        read = PendingRead(source.in_flight, number, lanes, flat[lanes] + i)
    return list(np.where(kept, values.view(np.uint8), 0).astype(np.uint8).view(source.dtype).T), read


def commit(w, mask):
    """The lanes of `mask` close their groups."""
    _groups(w).commit(w.active(mask))


def wait(w, mask, pending):
    """The lanes of `mask` wait: what they have copied is there."""
    for copy, lanes in _groups(w).finish(w.active(mask), pending):
        elements = len(copy.values)
        copy.array.in_flight.end(copy.number, (copy.flat[lanes][:, None] + np.arange(elements)).reshape(-1))
        if copy.source is not None:
            copy.source.end(lanes)
        for i, value in enumerate(copy.values):
            memory.deliver(w, copy.site, copy.array, lanes, copy.flat + i, value)


def _groups(w) -> Groups:
    """The groups of copies of a warp set."""
    return w.groups.setdefault("copies", Groups(w.lanes))
