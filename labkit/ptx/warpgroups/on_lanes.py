"""Tensor cores of a warpgroup on lanes: products that run asynchronously to the four warps that issue them.

A product is added to the accumulators when it begins; one of e4m3 as in `sums_of_e4m3`. An access to these is a finding
until its group has been waited for, and only then do the tensor cores count as having read its tiles. A product is one
operation of four warps: a warp that has waited knows that its tiles have been read, also for the other three, and may
release them, as one thread of a warpgroup does in CUTLASS. But it is not ordered after the other warps' own accesses: a
wait is that of one warp (PTX ISA, "wgmma.wait_group").
`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
`w.chunk` has the blocks of the launch that run together.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from labkit.ptx.fences import proxies
from labkit.ptx.formats.on_lanes import Format, find_format
from labkit.ptx.matrices.on_lanes import fragment_code
from labkit.ptx.tile_findings import note_too_short
from labkit.ptx.translation import call_site, emit_call
from labkit.ptx.warpgroups import findings
from labkit.ptx.warpgroups.accumulators import Accumulators
from labkit.ptx.warpgroups.sums_of_e4m3 import add_products
from labkit.ptx.warpgroups.unfenced import written_since_fence
from labkit.simulator import collectives, memory, tiles
from labkit.simulator.counters import ACCESSES, REQUESTS, WAVEFRONTS
from labkit.simulator.errors import KernelError
from labkit.simulator.family import Family
from labkit.simulator.groups import Groups
from labkit.simulator.lanes import intersect
from labkit.simulator.operands import (
    check_argument_count,
    constant_argument,
    locate_local_elements,
    resolve_element,
    waiting_line,
)
from labkit.simulator.seam import types
from labkit.simulator.values import describe
from labkit.simulator.warps import BLOCK, SLOT, START, THREAD
from labkit.simulator.warps import WARPGROUP_WARPS as WARPS
from labkit.trace import WARP_LANES

THREADS = WARPS * WARP_LANES
M = 64
STEP_BYTES = 32  # along k, in one product
ROW_BYTES = tiles.ROW_BYTES
MN_ROWS, MN_DEPTH = 64, 16  # rows of an operand in an MN-major tile, and k of one product


class Warpgroups:
    """Warpgroups of a warp set, as far as their warps are in it, and their products."""

    def __init__(self, w):
        self.in_block = w.launch.warpgroups_per_block
        self.number = w.warps[:, SLOT] * self.in_block + w.warps[:, THREAD] // THREADS  # of each warp's, in the chunk
        self.is_whole = np.bincount(self.number)[self.number] == WARPS  # whether all four warps are in this set
        self.is_short = w.warps[:, THREAD] // THREADS >= w.launch.warps_per_block // WARPS  # incomplete in its block?
        self.products = Groups(w.lanes)
        kept = w.chunk.kept
        self.cores = kept.get("cores") or kept.setdefault("cores", Cores(w.chunk))


class Cores:
    """Tensor cores of a chunk's warpgroups: numbers of products begun per warp, and done per warpgroup."""

    def __init__(self, chunk):
        launch = chunk.launch
        within = np.arange(launch.warpgroups_per_block)
        self.clocks = launch.clocks.of(np.array(chunk.blocks)[:, None], launch.warps_per_block + within).reshape(-1)
        self.begun = np.zeros((len(self.clocks), WARPS), np.int64)  # products that each warp has issued
        self.done = np.zeros(len(self.clocks), np.int64)


def get_warpgroups(w) -> Warpgroups:
    """Return the warpgroups of a warp set."""
    if "warpgroups" not in w.kept:
        w.kept["warpgroups"] = Warpgroups(w)
    return w.kept["warpgroups"]


def select_whole_warpgroups(w, mask, call):
    """Return the lanes of `mask` whose four warps make the call together, and note the others."""
    mask = collectives.keep_whole_warps(w, mask, call)
    if mask is False:
        return mask
    warpgroups, here = get_warpgroups(w), w.active(mask)[w.warps[:, START]]
    count = np.bincount(warpgroups.number, here)[warpgroups.number]
    wrong = here & (warpgroups.is_whole & (count != WARPS) | warpgroups.is_short)
    if not wrong.any():
        return mask
    findings.note_partial_warpgroup(w, call, wrong)
    return intersect(mask, ~wrong.take(w.row))


@dataclass(frozen=True)
class Callers:
    """Warps of a set that make a call: their rows in `WarpSet.warps`, and the number of each one's warpgroup."""

    rows: np.ndarray
    group: np.ndarray
    first: np.ndarray  # row of each warpgroup's first warp

    @property
    def count(self) -> int:
        return len(self.first)


def find_callers(w, mask) -> Callers:
    """Return the warps of `mask`."""
    rows = np.flatnonzero(w.active(mask)[w.warps[:, START]])
    _, first, group = np.unique(get_warpgroups(w).number[rows], return_index=True, return_inverse=True)
    return Callers(rows, group, rows[first])


# --- tiles ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """Tile in a shared array, an operand of some warpgroups, which read 32 bytes of k from it.

    `places` are the indices of the elements that each warpgroup reads; one warp of each, the `readers`, stands for its
    tensor cores.
    """

    site: int
    array: object
    readers: np.ndarray
    places: np.ndarray

    def note_reads(self, w, groups):
        """Record the completed reads of these of the warpgroups."""
        readers = self.readers.reshape(len(groups), -1)[groups].reshape(-1)
        cores = w.launch.warps_per_block + w.thread[readers] // THREADS
        threads = cores * WARP_LANES + w.lane[readers]
        places = self.places.reshape(len(groups), -1)[groups].reshape(-1)
        tiles.check_reads(w, self.site, self.array, readers, places, threads=threads)


class KMajor:
    """Layout of a tile with one row along k per row of the operand."""

    misplacement = "no place for 32 bytes of rows of 128"

    def end(self, byte, rows, tile_stride):
        """Return the byte past the end of the operand that begins at `byte`."""
        return byte // ROW_BYTES * ROW_BYTES + ROW_BYTES * rows

    def is_misplaced(self, byte):
        """Return whether no operand may begin at this byte."""
        return (byte % 16 != 0) | (byte % ROW_BYTES > ROW_BYTES - STEP_BYTES) | (byte // ROW_BYTES % 8 != 0)

    def unswizzled(self, rows, itemsize, tile_stride) -> np.ndarray:
        """Return the offsets of its elements in bytes, before swizzling."""
        return ROW_BYTES * np.arange(rows)[:, None] + np.arange(0, STEP_BYTES, itemsize)

    def registers(self, elements, rows):
        """Return the rows of the operand as registers, given its elements in the order of `unswizzled`."""
        return elements.view(np.uint32).reshape(-1, rows, STEP_BYTES // 4)


class MnMajor:
    """Layout of tiles with one row along M or N per k, in a format of 16 bits, for 64 rows of the operand each."""

    misplacement = "no multiple of 1024: 8 rows of 128"

    def end(self, byte, rows, tile_stride):
        return byte + (rows - 1) // MN_ROWS * tile_stride + ROW_BYTES * MN_DEPTH

    def is_misplaced(self, byte):
        return byte % tiles.ALIGNMENT_BYTES != 0

    def unswizzled(self, rows, itemsize, tile_stride):
        tile, inside = np.divmod(np.arange(0, 2 * rows, itemsize), ROW_BYTES)
        return ROW_BYTES * np.arange(MN_DEPTH)[:, None] + tile_stride * tile + inside

    def registers(self, elements, rows):
        by_k = elements.view(np.uint16).reshape(-1, MN_DEPTH, rows)
        return np.ascontiguousarray(by_k.transpose(0, 2, 1)).view(np.uint32)


MAJORS = KMajor(), MnMajor()  # by their numbers in the kernel language


def _tile_stride(array) -> int:
    """Return the bytes from one tile to the next, 0 where the array has no axis for tiles."""
    return array.strides[-3] * array.itemsize if len(array.strides) > 2 else 0


@lru_cache(256)  # up to 32 KB each: operands begin at many addresses
def _offsets(major, address: int, rows: int, itemsize: int, tile_stride: int) -> np.ndarray:
    """Return the indices of the operand's elements relative to the first, which is at `address`."""
    addresses = address + major.unswizzled(rows, itemsize, tile_stride)
    return ((tiles.swizzled(addresses) - address) // itemsize).reshape(-1)


def _locate_operand(w, mask, rows, site, array, index, major):
    """Return where the lanes' operand begins, and the lanes whose operand is valid."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    lanes, caller = w.active(mask), find_callers(w, mask)
    leader = np.zeros(len(w.warps), np.int64)
    leader[caller.rows] = w.warps[caller.first[caller.group], START]
    first = flat.take(leader.take(w.row))
    if (lanes & (flat != first)).any():
        findings.note_different_tiles(w, site, array, lanes & (flat != first))
    byte = array.address + first % array.elements * array.itemsize
    end = major.end(byte, rows, _tile_stride(array))
    outside = lanes & (end > array.address + tiles.end_offset(array) * array.itemsize)
    wrong = lanes & major.is_misplaced(byte)
    if outside.any():
        note_too_short(w, site, array, outside, index, int((end - byte).max()) // array.itemsize)
    if wrong.any() or array.alignment < tiles.ALIGNMENT_BYTES:
        findings.note_misaligned(w, site, array, wrong if wrong.any() else lanes, index, byte, major.misplacement)
    return first, intersect(mask, ~outside & ~wrong)


def _read_operand(w, caller, flat, rows, site, array, index, major) -> tuple[Operand, np.ndarray]:
    """Return the operand of each warpgroup, and the contents of its rows, 8 registers each."""
    first = flat[w.warps[caller.first, START]]
    byte = array.address + first % array.elements * array.itemsize
    places = np.empty((caller.count, rows * STEP_BYTES // array.itemsize), np.int64)
    for address in np.unique(byte):
        same = byte == address
        places[same] = first[same, None] + _offsets(major, int(address), rows, array.itemsize, _tile_stride(array))
    lanes = _readers(w, caller)
    tiles.check_arrived(w, site, array, lanes, places.reshape(-1))
    proxies.check_read(w, site, array, places.reshape(-1), "the tensor cores")
    totals = w.chunk.launch.counts[site]
    slots = w.warps[caller.first, SLOT] if len(totals) > 1 else np.zeros(caller.count, np.int64)
    for what, amount in ((ACCESSES, places.shape[1]), (REQUESTS, 1), (WAVEFRONTS, rows * STEP_BYTES // 128)):
        np.add.at(totals, (slots, what), amount)
    return Operand(site, array, lanes, places.reshape(-1)), major.registers(array.data.take(places), rows)


def _readers(w, caller) -> np.ndarray:
    """Return the lanes that stand for their warpgroups as readers: one warp of each."""
    return (w.warps[caller.first, START][:, None] + np.arange(WARP_LANES)).reshape(-1)


def _decode(format, registers) -> np.ndarray:
    """Return the numbers in registers, along the last axis."""
    return format.decode(registers).reshape(*registers.shape[:-1], -1).astype(np.float32, copy=False)


# --- on lanes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """Product in flight, the `number`-th (from 1) of each of these warpgroups.

    rows: of the accumulators' array, to which it adds.
    """

    accumulators: Accumulators
    rows: slice
    operands: tuple[Operand, ...]
    groups: np.ndarray
    number: np.ndarray


@dataclass(frozen=True)
class Scale:
    """Factors of acc = acc * keeps + sign * product."""

    keeps: object = True  # per lane
    sign: int = 1


def from_shared(w, mask, call, acc, n, format, scale, b, a):
    """Begin acc += A @ B.T, with both operands in shared memory.

    acc: site, array and index. a, b: site, array, indices and layout.
    """
    mask = select_whole_warpgroups(w, mask, call)
    if mask is not False:
        a_flat, mask = _locate_operand(w, mask, M, *a)
    if mask is not False:
        b_flat, mask = _locate_operand(w, mask, n, *b)
    if mask is False:
        return
    caller = find_callers(w, mask)
    w.chunk.sample(w, *a[:2], mask, a_flat)
    w.chunk.sample(w, *b[:2], mask, b_flat)
    left, a_registers = _read_operand(w, caller, a_flat, M, *a)
    right, b_registers = _read_operand(w, caller, b_flat, n, *b)
    _begin(w, mask, caller, call, acc, (format, scale), a_registers, b_registers, (left, right))


def from_registers(w, mask, call, acc, n, format, scale, b, a):
    """Begin acc += A @ B.T, with 16 rows of A in the registers of each warp, as the fragment of `mma`.

    acc: site, array and index. b: site, array, indices and layout. a: registers, and the line that wrote them without
    a fence since, else 0.
    """
    fragment, written = a
    mask = select_whole_warpgroups(w, mask, call)
    if mask is not False:
        if written:
            findings.note_fragment_not_fenced(w, call, mask, written)
        b_flat, mask = _locate_operand(w, mask, n, *b)
    if mask is False:
        return
    caller = find_callers(w, mask)
    right, b_registers = _read_operand(w, caller, b_flat, n, *b)
    values = np.stack([w.fill(register) for register in fragment], axis=-1)
    lanes = w.warps[caller.rows, START][:, None] + np.arange(WARP_LANES)
    # of lane 4 g + t, register 2 h + l is the (4 h + t)-th of row g + 8 l
    rows = values[lanes].reshape(-1, 8, 4, 2, 2).transpose(0, 4, 1, 3, 2).reshape(-1, 16, 8)
    a_registers = np.zeros((caller.count, WARPS, 16, 8), np.uint32)
    a_registers[caller.group, _quarter(w, caller.rows)] = rows
    _begin(w, mask, caller, call, acc, (format, scale), a_registers.reshape(-1, M, 8), b_registers, (right,))


def _quarter(w, rows):
    """Return the number of each of these warps in its warpgroup."""
    return w.warps[rows, THREAD] // WARP_LANES % WARPS


def _clocks(w, rows):
    """Return the clocks of these warps."""
    return w.launch.clocks.of(w.warps[rows, BLOCK], w.warps[rows, THREAD] // WARP_LANES)


def _begin(w, mask, caller, call, accumulators, format_and_scale, left, right, operands):
    """Add the product of the rows in the registers `left` and `right`, and keep it in flight."""
    (acc_site, acc, index), (format, scale) = accumulators, format_and_scale
    n = right.shape[1]
    keeps = _check_keeps(w, mask, caller, call, scale.keeps)
    flat, mask = locate_local_elements(w, acc_site, acc, mask, n // 2, index, is_read=keeps)
    if mask is False:
        return
    lanes = w.active(mask)
    first = int(flat[np.argmax(lanes)])
    if (flat[lanes] != first).any():
        raise KernelError("the accumulators of `wgmma` are the same elements in every thread", call[0])
    rows = slice(first, first + n // 2)
    state = acc.states[Accumulators]
    if state.is_touched:
        findings.note_not_fenced(w, acc_site, acc, lanes)
        state.is_touched = False
    k = STEP_BYTES * 8 // format.bits
    w.chunk.launch.flops[format.flops] += n * k * w.tally(mask)
    w.launch.events.note(w, mask, "product", call[0], operands[-1].array.name, amount=n * k * WARP_LANES)
    left, right = _decode(format, left) * np.float32(scale.sign), _decode(format, right)
    here, place = slice(None) if mask is None else lanes, (caller.group, _quarter(w, caller.rows))
    held = acc.data[rows, here] if keeps is True else np.where(keeps[here], acc.data[rows, here], np.float32(0))
    if format.name == "E4M3":
        sums = _to_matrices(held, caller.count, *place)
        add_products(sums, left, right)
        acc.data[rows, here] = _to_threads(sums, *place)
    else:
        acc.data[rows, here] = held + _to_threads(np.matmul(left, right.transpose(0, 2, 1)), *place)
    if keeps is not True:
        acc.written[rows, here] = True
    state.begin(rows, lanes, acc_site)
    warpgroups = get_warpgroups(w)
    groups, cores = warpgroups.number[caller.first], warpgroups.cores
    cores.begun[warpgroups.number[caller.rows], _quarter(w, caller.rows)] += 1
    number = cores.begun[groups, _quarter(w, caller.first)]
    w.chunk.launch.clocks.inform_tensor_cores(_clocks(w, caller.first), cores.clocks[groups])
    warpgroups.products.begin(Product(state, rows, operands, groups, number), lanes)
    w.chunk.launch.version += 1


# Row 16 w + 8 h + g and column 8 j + 2 t + c is the accumulator 4 j + 2 h + c of lane 4 g + t in warp w.


def _to_threads(sums, group, quarter):
    """Return each thread's accumulators, given each warpgroup's matrix of sums; the inverse of `_to_matrices`."""
    n = sums.shape[2]
    parts = sums.reshape(-1, WARPS, 2, 8, n // 8, 4, 2).transpose(4, 2, 6, 0, 1, 3, 5)
    return parts.reshape(n // 2, -1, WARPS, WARP_LANES)[:, group, quarter].reshape(n // 2, -1)


def _to_matrices(accumulators, count, group, quarter):
    """Return the matrices of sums of `count` warpgroups, given threads' accumulators; zeros for absent warps."""
    half = len(accumulators)
    parts = np.zeros((half, count, WARPS, WARP_LANES), np.float32)
    parts[:, group, quarter] = accumulators.reshape(half, -1, WARP_LANES)
    parts = parts.reshape(half // 4, 2, 2, count, WARPS, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
    return parts.reshape(count, M, 2 * half)


def _check_keeps(w, mask, caller, call, keeps):
    """Return whether each lane keeps its accumulators, True if all do; raise where a warpgroup's lanes disagree."""
    keeps, lanes = w.fill(keeps), w.active(mask)
    if keeps[lanes].all():
        return True
    leader = np.zeros(len(w.warps), np.int64)
    leader[caller.rows] = w.warps[caller.first[caller.group], START]
    if (keeps != keeps.take(leader.take(w.row)))[lanes].any():
        raise KernelError(
            f"all threads of a warpgroup say the same of whether `{call[2]}` keeps what the accumulators hold", call[0]
        )
    return keeps


def fence(w, mask):
    """Run `wgmma_fence`: order these warps' register accesses before later products."""
    for array in w.local_arrays():
        array.states[Accumulators].is_touched = False


def commit(w, mask):
    """Run `wgmma_commit`: close the group of products since the last commit."""
    w.launch.events.note(w, mask, "commit")
    get_warpgroups(w).products.commit(w.active(mask))


def wait(w, mask, call, pending):
    """Run `wgmma_wait`: complete, for each of these warps, the products of all but the newest groups."""
    mask = select_whole_warpgroups(w, mask, call)
    if mask is False:
        return
    w.launch.events.note(w, mask, "finish", call[0], amount=pending)
    warpgroups, rows = get_warpgroups(w), find_callers(w, mask).rows
    groups = warpgroups.number[rows]
    ended, done = warpgroups.products.finish(w.active(mask), pending), np.zeros(len(rows), np.int64)
    for product, lanes in ended:
        issuers = lanes[w.warps[rows, START]]
        number = product.number[np.searchsorted(product.groups, groups[issuers])]
        done[issuers] = np.maximum(done[issuers], number)
    w.waits_for = WarpgroupWait()
    while (is_early := warpgroups.cores.begun[groups].min(axis=1) < done).any():
        waiting = np.zeros(len(w.warps), np.bool_)
        waiting[rows] = is_early
        yield call[0], waiting.take(w.row), ()
    w.waits_for = None
    for product, lanes in ended:
        product.accumulators.end(product.rows, lanes)
        _note_done(w, product, groups[lanes[w.warps[rows, START]]])
    w.chunk.launch.clocks.learn_times(_clocks(w, rows), warpgroups.cores.clocks[groups], done)


def _note_done(w, product, groups):
    """Record that the product of these warpgroups is done, unless other warps of theirs have done so."""
    cores = get_warpgroups(w).cores
    is_new = np.isin(product.groups, groups) & (cores.done[product.groups] < product.number)
    if not is_new.any():
        return
    done_groups, number = product.groups[is_new], product.number[is_new]
    w.chunk.launch.clocks.set_finished_products(cores.clocks[done_groups], number - 1)
    for operand in product.operands:
        operand.note_reads(w, is_new)
    cores.done[done_groups] = number


class WarpgroupWait:
    """State of a warp that waits until the other warps of its warpgroup have issued the same product."""

    def reason(self, lane: int) -> str:
        """Return what the wait of a lane lacks."""
        return " for the other warps of its warpgroup"


# --- registers of a warpgroup --------------------------------------------------------------------


class Registers:
    """Registers per thread of each warpgroup, in all blocks of a chunk."""

    def __init__(self, w, in_block, call):
        limit, requested = w.launch.register_limit, max(w.launch.program.families[WARPGROUPS], default=None)
        if limit is None:
            raise KernelError(
                f"the compiler ignores `{call[2]}` in a kernel whose registers nothing limits: say how many threads a "
                "block has and how many blocks an SM holds, "
                f"`@cuda.jit(launch_bounds=({w.launch.threads_per_block}, 1))`",
                call[0],
            )
        self.at_launch = min(limit, requested or limit)  # ptxas allocates no more
        self.per_thread = np.full((len(w.chunk.blocks), in_block), self.at_launch, np.int64)


def set_registers(w, mask, call, count, increases):
    """Run `setmaxnreg`, which keeps values: set the registers per thread of whole warpgroups.

    `increases`: whether the count grows or shrinks.
    """
    mask = select_whole_warpgroups(w, mask, call)
    if mask is False:
        return
    chunk, warpgroups = w.chunk, get_warpgroups(w)
    if "registers" not in chunk.kept:
        registers = chunk.kept["registers"] = Registers(w, warpgroups.in_block, call)
        chunk.end_checks.append(lambda: findings.check_registers(chunk, registers, call))
    counts, groups = chunk.kept["registers"].per_thread.reshape(-1), warpgroups.number[find_callers(w, mask).rows]
    before = int(counts[groups].max() if increases else counts[groups].min())
    if before > count if increases else before < count:
        raise KernelError(
            f"`{call[2]}({count})` in a thread that has {before} registers is undefined: "
            f"{'inc asks for at least as many' if increases else 'dec keeps at most as many'} as there are",
            call[0],
        )
    counts[groups] = count


# --- in a kernel's text --------------------------------------------------------------------------

# Its notes are the register counts that warpgroups request per thread.
WARPGROUPS = Family(
    is_asynchronous=True,
    keeps_clocks=True,
    has_warpgroup_clocks=True,
    keeps_events=True,
    shared_states=(proxies.Unfenced,),
    local_states=(Accumulators,),
)


def _in_shared(translator, node, array, index, major, rows):
    """Return the code of a tile's read: site, array, indices of the first element, and layout."""
    subscript, found, indices = resolve_element(translator, node, array, index, ("shared",))
    if isinstance(major, MnMajor) and rows > MN_ROWS and found.type.ndim < 3:
        translator.fail(node, f"an MN-major B of {rows} columns needs an axis for its tiles of {MN_ROWS}")
    if found.type.others:
        translator.fail(node, f"`{translator.written(array)}` may be one of several arrays here: name one")
    return f"({translator.site(subscript, found, 'load')}, {found.code}, ({indices},), {translator.constant(major)})"


@dataclass(frozen=True)
class Multiply:
    """Call `(acc, index, N, A, a_index, B, b_index, FORMAT)`, or with a fragment in place of A and its index.

    If it `has_majors`, an operand's major follows its index; if it `is_scaled`, `keeps` and `SIGN` come last.
    """

    formats: dict[int, Format]
    has_fragment: bool = False
    has_majors: bool = False
    is_scaled: bool = False

    def translate(self, translator, node):
        count = 8 - self.has_fragment + self.has_majors * (2 - self.has_fragment)
        check_argument_count(translator, node, count + 2 * self.is_scaled)
        acc, index, n, *operands, format = node.args[:count]
        scale = self._scale(translator, node)
        n = constant_argument(translator, node, n, "N")
        if n % 8 or not 8 <= n <= 256:
            translator.fail(node, f"N is 8 to 256 in steps of 8, not {n}")
        subscript, sums, indices = resolve_element(translator, node, acc, index, ("local",))
        if sums.type.dtype != types.float32:
            translator.fail(node, f"wgmma adds up in float32, and `{translator.written(acc)}` is {describe(sums.type)}")
        format = find_format(translator, node, format, self.formats)
        width = 2 + self.has_majors  # arguments per operand in shared memory
        b, b_index, *b_major = operands[-width:]
        right = _in_shared(translator, node, b, b_index, self._major(translator, node, b_major, format), n)
        if self.has_fragment:
            written = written_since_fence(translator.source.tree, node, operands[0], translator.names)
            run, left = from_registers, f"({fragment_code(translator, operands[0], 4)}, {written})"
        else:
            a, a_index, *a_major = operands[:width]
            run = from_shared
            left = _in_shared(translator, node, a, a_index, self._major(translator, node, a_major, format), M)
        site = translator.site(subscript, sums, "store", n // 2)
        place = f"({site}, {sums.code}, ({indices},))"
        factors = n, translator.constant(format), scale
        return emit_call(translator, run, translator.mask, call_site(translator, node), place, *factors, right, left)

    def _scale(self, translator, node) -> str:
        """Return the code of a `Scale`."""
        if not self.is_scaled:
            return translator.constant(Scale())
        keeps = translator.condition(node.args[-2])
        sign = constant_argument(translator, node, node.args[-1], "the sign of a product")
        if sign not in (1, -1):
            translator.fail(node, f"the sign of a product is 1 or -1, not {sign}")
        return f"{translator.constant(Scale)}({keeps.code}, {sign})"

    def _major(self, translator, node, major, format) -> KMajor | MnMajor:
        """Return the layout of an operand; fail where its format does not allow it."""
        if not self.has_majors:
            return MAJORS[0]
        number = constant_argument(translator, node, major[0], "how an operand lies")
        if number not in range(len(MAJORS)):
            translator.fail(node, f"an operand lies `ptx.K_MAJOR` or `ptx.MN_MAJOR`, and {number} is neither")
        if number and format.bits != 16:
            translator.fail(node, "operands of BF16 or FP16 may lie MN-major: copy others into rows along k")
        return MAJORS[number]


class Wait:
    """Call `(pending)` that waits for products."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        pending = constant_argument(translator, node, node.args[0], "how many groups may be in flight")
        waiting_line(translator, node)
        return emit_call(translator, wait, translator.mask, call_site(translator, node), pending, waits=True)


@dataclass(frozen=True)
class SetRegisters:
    """Call `(count)` that changes the number of registers per thread of a warpgroup."""

    increases: bool

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        count = constant_argument(translator, node, node.args[0], "a number of registers")
        if count % 8 or not 24 <= count <= 256:
            translator.fail(node, f"a thread has 24 to 256 registers, a multiple of 8, not {count}")
        if self.increases:
            translator.program.families[WARPGROUPS].add(count)
        call = call_site(translator, node)
        return emit_call(translator, set_registers, translator.mask, call, count, self.increases)
