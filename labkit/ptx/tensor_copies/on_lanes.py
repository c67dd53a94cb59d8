"""TMA copies of boxes between global and shared memory, on lanes.

A load reads the array when it begins, and writes the tile when its barrier's phase ends (`mbarriers`). A store or an
addition is executed at once, but no thread may overwrite the tile until the issuing thread has waited for it.
`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
`w.chunk` has the blocks of the launch that run together.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from labkit.ptx.clusters import on_lanes as clusters
from labkit.ptx.fences import proxies
from labkit.ptx.mbarriers import on_lanes as mbarriers
from labkit.ptx.tensor_copies import findings
from labkit.ptx.tensor_copies.boxes import UNIT_BYTES, boxes_at, count_rows
from labkit.ptx.tile_findings import note_too_short
from labkit.ptx.translation import emit_call
from labkit.simulator import memory, tiles
from labkit.simulator.checks.in_flight import Operation, PendingRead
from labkit.simulator.counters import ACCESSES, REQUESTS, WAVEFRONTS
from labkit.simulator.family import Family
from labkit.simulator.groups import Groups
from labkit.simulator.operands import (
    check_argument_count,
    constant_argument,
    integer_argument,
    locate_vectors,
    resolve_element,
    site_numbers,
)
from labkit.simulator.seam import njit, types
from labkit.simulator.values import TensorMap, Tuple, Value, describe

WAVEFRONT_BYTES = 128  # a word from each of the 32 banks
WAIT_FOR_LOAD = "Wait for its barrier with `ptx.mbarrier_wait` first."
WAIT_FOR_STORE = (
    "Close its group with `ptx.tma_store_commit()`, wait for it with `ptx.tma_store_wait(n)` in the thread that began "
    "it, and let the others wait for that thread at a barrier."
)
NEVER_WAITED_FOR = (
    "`ptx.tma_store_wait` waits until the tile may be written again, not until the array holds it: store to each place "
    "once, and let a later launch read it, or use ordinary stores."
)
ADDS_TO_COME = (
    "`ptx.tma_store_wait` waits until the tile may be written again, not until the array holds the sums: let a later "
    "launch use them."
)


# --- tiles in shared memory ----------------------------------------------------------------------


@njit(cache=True)
def _swizzle(data, first, rows, boxes, into_tile):
    """Copy the rows of these boxes to tiles that begin at the bytes `first`, swizzled, or back."""
    row_bytes = rows.shape[2]
    pieces = row_bytes // 16
    for box in boxes:
        for row in range(rows.shape[1]):
            for i in range(row_bytes):
                place = row * row_bytes + i  # before swizzling, in lines of 128 bytes
                byte = first[box] + (place ^ ((place >> 7 & (pieces - 1)) << 4))  # piece p of line l is at p ^ l
                if into_tile:
                    data[byte] = rows[box, row, i]
                else:
                    rows[box, row, i] = data[byte]


@dataclass(eq=False)
class PendingLoad:
    """Boxes in flight to tiles, which begin at the elements `first` of a shared array."""

    site: int
    number: int
    array: object
    first: np.ndarray
    rows: np.ndarray
    source: PendingRead | None

    @property
    def box_bytes(self) -> int:
        return self.rows.shape[1] * self.rows.shape[2]

    def land(self, boxes):
        """Write these boxes to their tiles."""
        array, first = self.array, self.first
        _swizzle(array.data.view(np.uint8), first * array.itemsize, self.rows, boxes, True)
        array.in_flight.end(self.number, tiles.consecutive_offsets(first[boxes], self.box_bytes // array.itemsize))
        if self.source is not None:
            self.source.end(np.isin(np.arange(len(first)), boxes))


def _locate_tiles(w, site, array, mask, index, tile_bytes):
    """Return where the lanes' tiles begin, and the lanes whose tile is inside of the array and aligned."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    lanes, size = w.active(mask), tile_bytes // array.itemsize
    within = flat % array.elements
    outside = lanes & (within + size > tiles.end_offset(array))
    if outside.any():
        note_too_short(w, site, array, outside, index, size)
    byte = array.address + within * array.itemsize
    wrong = lanes & ((byte % tiles.ALIGNMENT_BYTES != 0) | (array.alignment < tiles.ALIGNMENT_BYTES))
    if wrong.any():
        findings.note_misaligned(w, site, array, wrong, index, byte)
    lanes = lanes & ~outside & ~wrong
    return flat, lanes if lanes.any() else False


def load(w, mask, source, target, barrier, line=0, ctas=None):
    """Begin a box's copy to a tile per lane of `mask`, in each block of its cluster that the mask `ctas` names.

    source: site, map and coordinates. target, barrier: site, array and indices.
    """
    (map_site, boxed, place), (tile_site, tile, index), (barrier_site, barriers, i) = source, target, barrier
    flat, mask = _locate_tiles(w, tile_site, tile, mask, index, prod(boxed.box[:-1]) * boxed.row_bytes)
    if mask is False:
        return
    lanes = np.flatnonzero(w.active(mask))
    boxes = boxes_at(boxed, [w.fill(p)[lanes].astype(np.int64) for p in place], w.launch.sites[map_site].line)
    boxes.count_accesses(w, lanes, map_site, True)
    tiles.check_reads(w, map_site, boxes.array, lanes, *boxes.places())
    w.chunk.sample(w, tile_site, tile, mask, flat)
    rows = boxes.read()
    targets = [(w.active(mask), 0)]
    if ctas is not None:
        by_block = clusters.multicast_targets(w, w.active(mask), ctas, line)
        targets = [(senders, clusters.block_offset(w, senders, np.int64(cta), line)) for cta, senders in by_block]
    for senders, offset in targets:
        numbers, senders = mbarriers.find_barriers(w, barrier_site, barriers, senders, i, offset)
        if senders is not False:
            mbarriers.check_fence(w, barrier_site, barriers, numbers, senders)
            reads = _begin_source_reads(w, map_site, boxes, lanes, senders[lanes])
            first = flat + offset * tile.elements
            copy = _begin_load(w, tile_site, tile, np.flatnonzero(senders), first, rows[senders[lanes]], reads)
            if ctas is not None:
                w.chunk.launch.clocks.publish(w, senders)
            mbarriers.begin_copy(w, barrier_site, barriers, numbers, senders, copy)


def _begin_source_reads(w, site, boxes, lanes, senders) -> PendingRead | None:
    """Begin the reads of a box for each of `lanes` in the mask `senders`; None where the kernel never writes there."""
    in_flight = boxes.array.in_flight
    if in_flight is None:
        return None
    places, inside = (part.reshape(len(lanes), -1)[senders] for part in boxes.places())
    box, _ = np.nonzero(inside)
    operation = Operation(site, "the copy", WAIT_FOR_LOAD, reads=True)
    number = in_flight.begin(operation, places[inside], w, lanes[senders][box])
    return PendingRead(in_flight, number, box, places[inside])


def _begin_load(w, site, tile, lanes, flat, rows, source) -> PendingLoad:
    """Begin the load of these rows, one box per lane, to the tiles that begin at `flat`."""
    flat, size = flat[lanes], rows.shape[1] * rows.shape[2] // tile.itemsize
    covered = tiles.consecutive_offsets(flat, size)
    _count_tile(w, site, tile, lanes, size)
    tiles.check_writes(w, site, tile, lanes, covered)
    proxies.check_write(w, site, tile, covered)
    tile.states[proxies.Unfenced].drop(covered)
    operation = Operation(site, "the copy", WAIT_FOR_LOAD)
    number = tile.in_flight.begin(operation, covered, w, lanes)
    return PendingLoad(site, number, tile, flat, rows, source)


def _count_tile(w, site, tile, lanes, size):
    """Add tiles of `size` elements to a site's totals: 128 bytes are one wavefront."""
    totals = w.chunk.launch.counts[site]
    slots = w.slot[lanes] if len(totals) > 1 else np.zeros(len(lanes), np.int64)
    for what, amount in ((ACCESSES, size), (REQUESTS, 1), (WAVEFRONTS, -(-size * tile.itemsize // WAVEFRONT_BYTES))):
        np.add.at(totals, (slots, what), amount)


# --- stores --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PendingStore:
    """Tiles that a store or addition reads: the issuing lanes, and the indices of their tiles' elements, a row each."""

    site: int
    number: int
    array: object
    lanes: np.ndarray
    covered: np.ndarray


def store(w, mask, target, source):
    """Begin a box's copy from a tile per lane of `mask`.

    target: site, map and coordinates. source: site, array and indices.
    """
    (map_site, boxed, place), (tile_site, tile, index) = target, source
    box_bytes = prod(boxed.box[:-1]) * boxed.row_bytes
    flat, mask = _locate_tiles(w, tile_site, tile, mask, index, box_bytes)
    if mask is False:
        return
    lanes = np.flatnonzero(w.active(mask))
    boxes = boxes_at(boxed, [w.fill(p)[lanes].astype(np.int64) for p in place], w.launch.sites[map_site].line)
    _begin_tile_reads(
        w, mask, tile_site, tile, tiles.consecutive_offsets(flat[lanes], box_bytes // tile.itemsize), "the store"
    )
    rows = np.empty((len(lanes), boxes.rows, boxes.row_bytes), np.uint8)
    _swizzle(tile.data.view(np.uint8), flat[lanes] * tile.itemsize, rows, np.arange(len(lanes)), False)
    boxes.count_accesses(w, lanes, map_site, False)
    unchanged = boxes.matches(rows)
    boxes.write(rows)
    places, inside = boxes.places()
    tiles.check_writes(w, map_site, boxes.array, lanes, places, inside, unchanged, boxes.matches(rows))
    operation = Operation(map_site, "the store", NEVER_WAITED_FOR)
    box = np.repeat(lanes, len(places) // len(lanes))[inside]
    boxes.array.in_flight.begin(operation, places[inside], w, box)
    w.chunk.launch.version += 1


def add(w, mask, target, source, count):
    """Begin to add `count` elements of a tile to those of an array, per lane of `mask`.

    target, source: site, array and indices.
    """
    (site, array, index), (tile_site, tile, tile_index) = target, source
    size_bytes = count * array.itemsize
    flat, mask = locate_vectors(w, site, array, mask, size_bytes, index, alignment=UNIT_BYTES)
    if mask is False:
        return
    first, mask = locate_vectors(w, tile_site, tile, mask, size_bytes, tile_index, alignment=UNIT_BYTES)
    if mask is False:
        return
    lanes = np.flatnonzero(w.active(mask))
    places, covered = (tiles.consecutive_offsets(begin[lanes], count) for begin in (flat, first))
    _begin_tile_reads(w, mask, tile_site, tile, covered, "the addition")
    count_rows(w, lanes, site, array, flat[lanes][:, None], np.full((len(lanes), 1), count), False)
    w.chunk.sample(w, site, array, mask, flat)
    tiles.check_atomics(w, site, array, lanes, places)
    array.in_flight.begin(Operation(site, "the addition", ADDS_TO_COME, is_atomic=True), places, w, lanes)
    np.add.at(array.data, places, tile.data[covered])
    w.chunk.launch.version += 1


def _begin_tile_reads(w, mask, site, tile, covered, name):
    """Begin an operation, `name` in findings, that reads the elements `covered`, one tile per lane of `mask`."""
    lanes = np.flatnonzero(w.active(mask))
    size = len(covered) // len(lanes)
    _count_tile(w, site, tile, lanes, size)
    tiles.check_reads(w, site, tile, lanes, covered)
    proxies.check_read(w, site, tile, covered, "TMA")
    number = tile.in_flight.begin(Operation(site, name, WAIT_FOR_STORE, reads=True), covered, w, lanes)
    w.launch.events.note(w, mask, "store", w.launch.sites[site].line, tile.name, amount=size * tile.itemsize)
    _stores(w).begin(PendingStore(site, number, tile, lanes, covered.reshape(len(lanes), size)), w.active(mask))


def commit(w, mask):
    """Run `tma_store_commit`: close the groups of the lanes of `mask`."""
    w.launch.events.note(w, mask, "commit stores")
    _stores(w).commit(w.active(mask))


def wait(w, mask, pending):
    """Run `tma_store_wait`: end the tile reads of the lanes' groups."""
    w.launch.events.note(w, mask, "finish stores", amount=pending)
    for ended, lanes in _stores(w).finish(w.active(mask), pending):
        lanes = np.flatnonzero(lanes)
        covered = ended.covered[np.searchsorted(ended.lanes, lanes)].reshape(-1)
        ended.array.in_flight.end(ended.number, covered)
        tiles.check_reads(w, ended.site, ended.array, lanes, covered)


def _stores(w) -> Groups:
    """Return the groups of stores of a warp set."""
    if "stores" not in w.kept:
        w.kept["stores"] = Groups(w.lanes)
        w.chunk.end_checks.append(lambda: findings.note_unfinished_stores(w, w.kept["stores"].running))
    return w.kept["stores"]


# --- in a kernel's text --------------------------------------------------------------------------

TENSOR_COPIES = Family(  # its notes are the numbers of sites where a load writes its tile
    is_asynchronous=True,
    shared_states=(proxies.Unfenced,),
    cure_race=findings.cure_race,
    cure_unwritten=findings.cure_unwritten,
)


def _tensor_map(translator, node, argument, kinds=("TensorMap",)):
    value = translator.expression(argument)
    if not isinstance(value.type, TensorMap) or value.type.kind not in kinds:
        needed = " or a ".join(kinds)
        translator.fail(node, f"this copy needs a {needed}: make one on the host, and pass it to the kernel")
    return value


def _boxed(translator, node, tensor_map, place, kind, offset=None, of_pixels=False):
    """Return the code of an access by a map: site, map, and coordinates of the box."""
    value = _tensor_map(translator, node, tensor_map, ("PixelMap",) if of_pixels else ("TensorMap",))
    what = "first window" if of_pixels else "box"
    begin = _numbers(translator, place, f"the place of a {what}", value.type.array.ndim)
    if offset is not None:
        begin = f"(*{begin}, *{_numbers(translator, offset, 'the place of a pixel in its window', 2)})"
    site = translator.site(tensor_map, Value("", value.type.array), kind)
    return f"({site}, {value.code}, {begin})"


def _numbers(translator, node, what, count):
    """Return the code of a tuple of `count` integers."""
    value = translator.expression(node)
    items = value.type.items if isinstance(value.type, Tuple) else ()
    if len(items) != count or not all(isinstance(item, types.Integer) for item in items):
        translator.fail(node, f"{what} is a tuple of {count} whole numbers here")
    return value.code


def _in_shared(translator, node, array, index, kind):
    """Return the code of an access to a tile: site, array, and indices of the first element; note a load's site."""
    subscript, found, indices = resolve_element(translator, node, array, index, ("shared",))
    if found.type.others:
        translator.fail(node, f"`{translator.written(array)}` may be one of several arrays here: name one")
    site = translator.site(subscript, found, kind)
    if kind == "store":
        translator.program.families[TENSOR_COPIES].update(site_numbers(translator, site))
    return f"({site}, {found.code}, ({indices},))"


@dataclass(frozen=True)
class LoadCall:
    """Call `(tile, index, tensor_map, place, barriers, i)`; with `multicast` a mask of blocks follows.

    With `of_pixels` the offset of the pixels in their windows follows `place`.
    """

    multicast: bool = False
    of_pixels: bool = False

    def translate(self, translator, node):
        check_argument_count(translator, node, 6 + self.of_pixels + self.multicast)
        tile, index, tensor_map, place, *offset = node.args[: 4 + self.of_pixels]
        barriers, i, *blocks = node.args[4 + self.of_pixels :]
        box = _boxed(translator, node, tensor_map, place, "load", *offset, of_pixels=self.of_pixels)
        target = _in_shared(translator, node, tile, index, "store")
        site, array, mask, barrier = mbarriers.barrier_operands(translator, node, barriers, i, "atomic")
        more = [f"{node.lineno}, {integer_argument(translator, b, 'a mask of blocks').code}" for b in blocks]
        return emit_call(translator, load, mask, box, target, f"({site}, {array}, {barrier})", *more)


class Prefetch:
    """Call `(tensor_map)`, which only changes timing."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        _tensor_map(translator, node, node.args[0], ("TensorMap", "PixelMap"))
        return Value("None", types.none)


@dataclass(frozen=True)
class StoreCall:
    """Call `(tensor_map, place, tile, index)` that begins a store."""

    of_pixels: bool = False

    def translate(self, translator, node):
        check_argument_count(translator, node, 4)
        tensor_map, place, tile, index = node.args
        box = _boxed(translator, node, tensor_map, place, "store", of_pixels=self.of_pixels)
        source = _in_shared(translator, node, tile, index, "load")
        return emit_call(translator, store, translator.mask, box, source)


class AddCall:
    """Call `(array, index, tile, tile_index, count)` that begins an addition."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 5)
        sums, tile = node.args[:2], node.args[2:4]
        subscript, array, indices = resolve_element(translator, node, *sums, ("global",))
        _, addends, _ = resolve_element(translator, node, *tile, ("shared",))
        count = constant_argument(translator, node, node.args[4], "how many numbers are added")
        for kind in (array.type, addends.type):
            if kind.dtype != types.float32:
                translator.fail(node, f"float32 is added to float32 here, and `{kind.name}` is {describe(kind)}")
        if array.type.others:
            translator.fail(node, f"`{translator.written(sums[0])}` may be one of several arrays here: name one")
        if count <= 0 or count % 4:
            translator.fail(node, f"a multiple of 4 numbers is added, not {count}")
        target = f"({translator.site(subscript, array, 'atomic')}, {array.code}, ({indices},))"
        source = _in_shared(translator, node, *tile, "load")
        return emit_call(translator, add, translator.mask, target, source, count)


class StoreWait:
    """Call `(pending)` that waits for stores."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        pending = constant_argument(translator, node, node.args[0], "how many groups may be in flight")
        return emit_call(translator, wait, translator.mask, pending)
