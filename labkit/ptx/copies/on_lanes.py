"""Asynchronous copies from global to shared memory, on lanes.

The source is read when a copy begins, and the target written when the thread has waited for it: as late as on any GPU.
From then on they are the thread's own writes, which other threads may read after a barrier. The beginning also counts
as a write after others' reads, since a GPU may write at once.

`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
"""

import ast
from dataclasses import dataclass
from functools import partial

import numpy as np

from labkit.ptx.translation import emit_call
from labkit.simulator import memory, numba_types
from labkit.simulator.checks.in_flight import Operation, PendingRead
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.groups import Groups
from labkit.simulator.lanes import intersect
from labkit.simulator.operands import (
    check_argument_count,
    constant_argument,
    drop_negative_indices,
    integer_argument,
    locate_vectors,
    resolve_element,
    site_numbers,
)
from labkit.simulator.slices import parts_of
from labkit.simulator.tiles import ExpandedLanes
from labkit.simulator.values import describe

CLOSE_AND_WAIT = (
    "Close its group with `ptx.cp_async_commit()`, wait for that with `ptx.cp_async_wait(n)`, where n counts this "
    "thread's newer groups, "
)
CURE = f"{CLOSE_AND_WAIT}then for the other threads with `cuda.syncthreads()`."
COPIES = Family(is_asynchronous=True, notes_copies=True)


@dataclass(frozen=True)
class Copy:
    """Call `(tile, index, source, source_index, width_bytes, valid_bytes)` that begins a copy."""

    widths_bytes: tuple[int, ...]
    past_l1: tuple[int, ...]

    def translate(self, translator, node):
        check_argument_count(translator, node, 6)
        tile_subscript, tile, index = resolve_element(translator, node, *node.args[:2], ("shared",))
        source_subscript, source, source_index = resolve_element(translator, node, *node.args[2:4], ("global",))
        width_bytes = constant_argument(translator, node, node.args[4], "the width of a copy")
        valid = integer_argument(translator, node.args[5], "how many bytes of a copy are read")
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
        load_site = translator.site(source_subscript, source, "load", elements)
        store_site = translator.site(tile_subscript, tile, "store", elements)
        if width_bytes in self.past_l1:
            translator.program.past_l1 |= {*site_numbers(translator, load_site)}
        translator.program.families[COPIES].update(site_numbers(translator, store_site))
        to_place = f"({store_site}, {tile.code}, ({index},))"
        from_place = f"({load_site}, {source.code}, ({source_index},))"
        return emit_call(translator, begin, translator.mask, width_bytes, valid.code, to_place, from_place)


class Wait:
    """Call `(pending)` that waits for all of a thread's groups but the newest."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        pending = constant_argument(translator, node, node.args[0], "how many groups may be in flight")
        if pending < 0:
            translator.fail(node, f"at least no group is in flight: {pending} is less than that")
        return emit_call(translator, wait, translator.mask, pending)


@dataclass(frozen=True)
class _PendingCopy:
    """A copy in flight, `number` among those to its shared array: its target, and the lanes' values per element."""

    site: int
    number: int
    array: object
    flat: np.ndarray
    values: list[np.ndarray]
    source: PendingRead | None


def begin(w, mask, width_bytes, valid, target, source):
    """Begin a copy per lane of `mask`; `target` and `source` are places: a site, an array and the indices."""
    valid = w.fill(valid).astype(np.int64)
    wrong = w.active(mask) & ((valid < 0) | (valid > width_bytes))
    if wrong.any():
        raise KernelError(
            f"a copy of {width_bytes} bytes reads 0 to {width_bytes} of them, not {valid[wrong][0]}",
            w.launch.sites[next(_split_by_array(w, mask, target))[0][0]].line,
        )
    for to_place, lanes in _split_by_array(w, mask, target):
        for from_place, both_lanes in _split_by_array(w, lanes, source):
            _begin(w, both_lanes, width_bytes, valid, to_place, from_place)


def _split_by_array(w, mask, place):
    """Yield the place in each array that it may be in, and the lanes to which that applies."""
    site, array, index = place
    for one_array, its_lanes in parts_of(array):
        lanes = mask if its_lanes is None else intersect(mask, its_lanes)
        if lanes is not False:
            yield (site[one_array.name] if isinstance(site, dict) else site, one_array, index), lanes


def _begin(w, mask, width_bytes, valid, target, source):
    site, tile, index = target
    elements = width_bytes // tile.itemsize
    mask = drop_negative_indices(w, site, tile, mask, index)
    if mask is False:
        return
    flat, mask = locate_vectors(w, site, tile, mask, width_bytes, index)
    if mask is False:
        return
    values, pending_read = _read_source(w, mask, width_bytes, valid, *source)
    memory.count_accesses(w, site, tile, flat, mask, False, elements)
    w.chunk.sample(w, site, tile, mask, flat)
    lanes = w.active(mask)
    last = _last_writer(tile, flat, lanes)
    for i in range(elements):
        memory.check_write(
            w, site, tile, mask, flat + i, ~w.all_lanes, memory.equal_with_nan(values[i].take(last), values[i])
        )
    places = (flat[lanes][:, None] + np.arange(elements)).reshape(-1)
    number = tile.in_flight.begin(
        Operation(site, "the copy", CURE, explain=partial(_explain_wait, w.launch.sites[site].line)),
        places,
        w,
        np.flatnonzero(lanes),
    )
    _groups(w).begin(_PendingCopy(site, number, tile, flat, values, source=pending_read), lanes)


def _last_writer(array, flat, lanes):
    """Return the last of these lanes to copy to each lane's place, itself if it is the only one."""
    last = np.empty(array.data.size, np.int64)
    last[flat[lanes]] = np.flatnonzero(lanes)
    return np.where(lanes, last.take(flat), 0)


def _read_source(w, mask, width_bytes, valid, site, source, index):
    """Return an array of the lanes' values per element, zero beyond the `valid` bytes, and the pending read.

    The read is None where the kernel does not write to the source.
    """
    elements = width_bytes // source.itemsize
    values = np.zeros((w.lanes, elements), source.dtype)
    reading, used = intersect(mask, valid > 0), -(-valid // source.itemsize)  # lanes that read; their elements
    if reading is not False:
        flat, reading = locate_vectors(w, site, source, reading, width_bytes, index, used)
    if reading is False:
        return list(values.T), None
    memory.count_accesses(w, site, source, flat, reading, True, elements)
    w.chunk.sample(w, site, source, reading, flat)
    for i in range(elements):
        readers = intersect(reading, used > i)
        if readers is not False:
            lanes = w.active(readers)
            values[lanes, i] = memory.read(w, site, source, readers, np.where(lanes, flat + i, 0))[lanes]
    is_valid = np.arange(width_bytes) < valid[:, None]
    pending_read = None
    if source.in_flight is not None:
        lanes, i = np.nonzero((np.arange(elements) < used[:, None]) & w.active(reading)[:, None])
        operation = Operation(site, "the copy", CURE, reads=True)
        number = source.in_flight.begin(operation, flat[lanes] + i, w, lanes)
        pending_read = PendingRead(source.in_flight, number, lanes, flat[lanes] + i)
    return list(np.where(is_valid, values.view(np.uint8), 0).astype(np.uint8).view(source.dtype).T), pending_read


def commit(w, mask):
    """Close the groups of the lanes of `mask`."""
    _groups(w).commit(w.active(mask))


def wait(w, mask, pending):
    """Complete the copies that the lanes of `mask` wait for."""
    for copy, lanes in _groups(w).finish(w.active(mask), pending):
        elements = len(copy.values)
        copy.array.in_flight.end(copy.number, (copy.flat[lanes][:, None] + np.arange(elements)).reshape(-1))
        if copy.source is not None:
            copy.source.end(lanes)
        for i, value in enumerate(copy.values):
            memory.deliver_write(w, copy.site, copy.array, lanes, copy.flat + i, value)


def _explain_wait(line, w, array, element, beginner):
    """Return a sentence on the wait that left a line's copy to an element in flight; "" if none is known."""
    w = w.warp_set if isinstance(w, ExpandedLanes) else w
    groups, kernel = _groups(w), w.launch.source.tree
    if announced := _explain_announcement(kernel, line):
        return announced
    for copy, lanes, group in reversed(groups.running):
        found = lanes & (copy.flat <= element) & (element < copy.flat + len(copy.values))
        found &= (w.block == beginner[0]) & (w.thread == beginner[1])
        if copy.array is array and found.any():
            lane = int(np.argmax(found))
            return _explain_groups(kernel, groups.newer_at_last_wait(int(group[lane]), lane))
    return ""


def _explain_announcement(kernel, line):
    """Return a sentence on a copy in a branch that tells other warps of it by an mbarrier; "" for another copy.

    No barrier of the block can stand in such a branch, which other warps do not run.
    """
    branch = next((body for body in _branches(kernel) if body[0].lineno <= line <= body[-1].end_lineno), None)
    if branch is None:
        return ""
    arrives, waited = [], []
    for statements in _bodies(branch):
        for before, statement in zip([None, *statements], statements, strict=False):
            if isinstance(statement, ast.Expr) and ".mbarrier_arrive" in ast.unparse(statement):
                is_waited = isinstance(before, ast.Expr) and ".cp_async_wait(" in ast.unparse(before)
                (waited if is_waited else arrives).append(statement)
    if not arrives + waited:
        return ""
    if waited and len(arrives) == 1:
        return (
            f"Line {arrives[0].lineno}, `{ast.unparse(arrives[0])}`, has no wait before it: write "
            "`ptx.cp_async_wait(n)` there, where n counts the newer groups that may still be in flight."
        )
    return f"{CLOSE_AND_WAIT}and only then tell the other threads with `ptx.mbarrier_arrive`."


def _branches(kernel):
    """Yield the branches of each `if`, from the outside in."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.If):
            yield from filter(None, (node.body, node.orelse))


def _bodies(statements):
    """Yield a body, and those inside it."""
    yield statements
    for statement in statements:
        for name in ("body", "orelse"):
            if inner := getattr(statement, name, None):
                yield from _bodies(inner)


def _explain_groups(kernel, waited):
    if waited is None:
        return ""
    newer, pending = waited
    if newer < 0:
        return (
            "The copy began after its thread's last wait. If the element that it replaces is meant, add a stage to the "
            "ring; if its own is meant, wait before the access."
        )
    calls = [n for n in ast.walk(kernel) if isinstance(n, ast.Call)]
    waits = [n.lineno for n in calls if ast.unparse(n.func).endswith("cp_async_wait")]
    branches = [n for n in ast.walk(kernel) if isinstance(n, ast.If)]
    in_branch = [n.lineno for branch in branches for n in ast.walk(branch) if n in calls and _is_commit(n)]
    if in_branch:
        return (
            f"Close a group in every iteration, even an empty one: `ptx.cp_async_commit()` in line {in_branch[0]} is "
            "inside an `if`, so a wait that counts groups leaves older copies in flight."
        )
    where = f"In line {waits[0]}, `ptx.cp_async_wait`" if len(waits) == 1 else "The last `ptx.cp_async_wait`"
    left = f"{pending} group{'s' * (pending != 1)}"
    return (
        f"{where} leaves {left} in flight, and this copy's had {newer} newer: leave at most {newer}, then let all wait "
        "at `cuda.syncthreads()`."
    )


def _is_commit(call):
    return ast.unparse(call.func).endswith("cp_async_commit")


def _groups(w) -> Groups:
    """Return the groups of copies of a warp set."""
    return w.kept.setdefault("copies", Groups(w.lanes))
