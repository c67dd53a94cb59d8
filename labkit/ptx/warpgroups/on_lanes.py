"""The tensor cores of a warpgroup: products that run beside the four warps which asked for them.

A product is added to the accumulators when it begins, one of e4m3 as `sums_of_e4m3` says. Until its group has been
waited for, an access to them is a finding, and only then do its tiles count as read, by the tensor cores: a product is
one operation of four warps. So a warp that has waited knows that all of its tiles were read, for the other three as
well, and may hand them on. (So do the pipelines of CUTLASS, where one thread of a warpgroup releases a stage.) But it
knows nothing of what those warps do themselves: a wait is that of one warp (PTX ISA, "wgmma.wait_group").
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import types

from labkit.ptx.fences import proxies
from labkit.ptx.formats.on_lanes import Format, format_of
from labkit.ptx.matrices.on_lanes import fragment
from labkit.ptx.tile_findings import too_short
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
    check_count,
    element,
    fixed_number,
    locate_local_elements,
    waiting_line,
)  # fmt: skip
from labkit.simulator.values import Value, describe
from labkit.simulator.warps import BLOCK, SLOT, START, THREAD
from labkit.simulator.warps import WARPGROUP_WARPS as WARPS
from labkit.trace import WARP_LANES

THREADS = WARPS * WARP_LANES
M = 64
STEP_BYTES = 32  # along k, in one product
ROW_BYTES = tiles.ROW_BYTES
MN_ROWS, MN_DEPTH = 64, 16  # of an operand in an MN-major tile, and of k in one product


class Warpgroups:
    """The warpgroups of a warp set, as far as their warps are in it, and their products."""

    def __init__(self, w):
        self.in_block = w.launch.warpgroups_per_block
        self.number = w.warps[:, SLOT] * self.in_block + w.warps[:, THREAD] // THREADS  # of each warp's, in the chunk
        self.is_whole = np.bincount(self.number)[self.number] == WARPS  # of each warp's: is all of it in this set?
        self.is_short = w.warps[:, THREAD] // THREADS >= w.launch.warps_per_block // WARPS  # has it less in its block?
        self.products = Groups(w.lanes)
        kept = w.chunk.kept
        self.cores = kept.get("cores") or kept.setdefault("cores", Cores(w.chunk))


class Cores:
    """The tensor cores of the warpgroups of a chunk: what each warp has begun, and what is done."""

    def __init__(self, chunk):
        launch = chunk.launch
        within = np.arange(launch.warpgroups_per_block)
        self.clocks = launch.clocks.of(np.array(chunk.blocks)[:, None], launch.warps_per_block + within).reshape(-1)
        self.begun = np.zeros((len(self.clocks), WARPS), np.int64)  # products that each warp has asked for
        self.done = np.zeros(len(self.clocks), np.int64)


def of(w) -> Warpgroups:
    """The warpgroups of a warp set."""
    if "warpgroups" not in w.groups:
        w.groups["warpgroups"] = Warpgroups(w)
    return w.groups["warpgroups"]


def together(w, mask, call):
    """The lanes of `mask` in warps whose warpgroup makes the call as one; the others are noted."""
    mask = collectives.whole_warps(w, mask, call)
    if mask is False:
        return mask
    mine, here = of(w), w.active(mask)[w.warps[:, START]]
    count = np.bincount(mine.number, here)[mine.number]
    wrong = here & (mine.is_whole & (count != WARPS) | mine.is_short)
    if not wrong.any():
        return mask
    findings.apart(w, call, wrong)
    return intersect(mask, ~wrong.take(w.row))


@dataclass(frozen=True)
class Callers:
    """The warps of a set that make a call: their rows in `WarpSet.warps`, and of which of some warpgroups each is."""

    rows: np.ndarray
    group: np.ndarray
    first: np.ndarray  # of each warpgroup, the first of its warps here, as a row

    @property
    def count(self) -> int:
        return len(self.first)


def callers(w, mask) -> Callers:
    rows = np.flatnonzero(w.active(mask)[w.warps[:, START]])
    _, first, group = np.unique(of(w).number[rows], return_index=True, return_inverse=True)
    return Callers(rows, group, rows[first])


# --- tiles ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """A tile in a shared array, of which 32 bytes along k are read: an operand of some warpgroups.

    `places` says where the elements lie that are read for each warpgroup; a warp of each, the `readers`, counts
    as its tensor cores.
    """

    site: int
    array: object
    readers: np.ndarray
    places: np.ndarray

    def note(self, w, groups):
        """The reading is done for these of the warpgroups."""
        readers = self.readers.reshape(len(groups), -1)[groups].reshape(-1)
        cores = w.launch.warps_per_block + w.thread[readers] // THREADS
        threads = cores * WARP_LANES + w.lane[readers]
        places = self.places.reshape(len(groups), -1)[groups].reshape(-1)
        tiles.note_reads(w, self.site, self.array, readers, places, threads=threads)


class KMajor:
    """A tile of a row for each row of the operand, along k."""

    beginning = "no place for 32 bytes of rows of 128"

    def end(self, byte, rows, apart):
        """Behind which byte the operand ends that begins at this one."""
        return byte // ROW_BYTES * ROW_BYTES + ROW_BYTES * rows

    def is_wrong(self, byte):
        return (byte % 16 != 0) | (byte % ROW_BYTES > ROW_BYTES - STEP_BYTES) | (byte // ROW_BYTES % 8 != 0)

    def straight(self, rows, itemsize, apart) -> np.ndarray:
        """Where its elements would lie without a swizzle, in bytes from the first on."""
        return ROW_BYTES * np.arange(rows)[:, None] + np.arange(0, STEP_BYTES, itemsize)

    def registers(self, elements, rows):
        """What each row of the operand has, of the elements in the order of `straight`, as registers."""
        return elements.view(np.uint32).reshape(-1, rows, STEP_BYTES // 4)


class MnMajor:
    """Tiles of a row for each k, along M or N, in a format of 16 bits: each has 64 rows of the operand."""

    beginning = "no multiple of 1024: 8 rows of 128"

    def end(self, byte, rows, apart):
        return byte + (rows - 1) // MN_ROWS * apart + ROW_BYTES * MN_DEPTH

    def is_wrong(self, byte):
        return byte % tiles.ALIGNMENT_BYTES != 0

    def straight(self, rows, itemsize, apart):
        tile, inside = np.divmod(np.arange(0, 2 * rows, itemsize), ROW_BYTES)
        return ROW_BYTES * np.arange(MN_DEPTH)[:, None] + apart * tile + inside

    def registers(self, elements, rows):
        by_k = elements.view(np.uint16).reshape(-1, MN_DEPTH, rows)
        return np.ascontiguousarray(by_k.transpose(0, 2, 1)).view(np.uint32)


MAJORS = KMajor(), MnMajor()  # by their numbers in the kernel language


def _tiles_apart(array) -> int:
    """How many bytes from a tile to the next, where an array has an axis for that."""
    return array.strides[-3] * array.itemsize if len(array.strides) > 2 else 0


@lru_cache(256)  # patterns, of up to 32 KB each: operands begin at many addresses
def _pattern(major, address: int, rows: int, itemsize: int, apart: int) -> np.ndarray:
    """Where the operand's elements lie, from the one at this address on."""
    straight = address + major.straight(rows, itemsize, apart)
    return ((tiles.swizzled(straight) - address) // itemsize).reshape(-1)


def _operand(w, site, array, mask, index, rows, major):
    """Where the operand begins that the lanes name, and the lanes whose operand lies as it must."""
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    lanes, caller = w.active(mask), callers(w, mask)
    leader = np.zeros(len(w.warps), np.int64)
    leader[caller.rows] = w.warps[caller.first[caller.group], START]
    first = flat.take(leader.take(w.row))
    if (lanes & (flat != first)).any():
        findings.differ(w, site, array, lanes & (flat != first))
    byte = array.address + first % array.elements * array.itemsize
    end = major.end(byte, rows, _tiles_apart(array))
    outside = lanes & (end > array.address + tiles.end(array) * array.itemsize)
    wrong = lanes & major.is_wrong(byte)
    if outside.any():
        too_short(w, site, array, outside, index, int((end - byte).max()) // array.itemsize)
    if wrong.any() or array.alignment < tiles.ALIGNMENT_BYTES:
        findings.misaligned(w, site, array, wrong if wrong.any() else lanes, index, byte, major.beginning)
    return first, intersect(mask, ~outside & ~wrong)


def _read(w, caller, site, array, flat, rows, major) -> tuple[Operand, np.ndarray]:
    """The operand of each warpgroup, and the 8 registers that each of its rows would fill."""
    first = flat[w.warps[caller.first, START]]
    byte = array.address + first % array.elements * array.itemsize
    places = np.empty((caller.count, rows * STEP_BYTES // array.itemsize), np.int64)
    for address in np.unique(byte):
        mine = byte == address
        places[mine] = first[mine, None] + _pattern(major, int(address), rows, array.itemsize, _tiles_apart(array))
    lanes = _readers(w, caller)
    tiles.note_early(w, site, array, lanes, places.reshape(-1))
    proxies.check_read(w, site, array, places.reshape(-1), "the tensor cores")
    totals = w.chunk.launch.counts[site]
    slots = w.warps[caller.first, SLOT] if len(totals) > 1 else np.zeros(caller.count, np.int64)
    for what, amount in ((ACCESSES, places.shape[1]), (REQUESTS, 1), (WAVEFRONTS, rows * STEP_BYTES // 128)):
        np.add.at(totals, (slots, what), amount)
    return Operand(site, array, lanes, places.reshape(-1)), major.registers(array.data.take(places), rows)


def _readers(w, caller) -> np.ndarray:
    """The lanes that count as those who read for their warpgroups: a warp of each."""
    return (w.warps[caller.first, START][:, None] + np.arange(WARP_LANES)).reshape(-1)


def _decoded(form, registers) -> np.ndarray:
    """The numbers in registers, along the last axis."""
    return form.decode(registers).reshape(*registers.shape[:-1], -1).astype(np.float32, copy=False)


# --- on lanes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A product under way: the rows of the accumulators' array that it adds to, and its operands.

    It is the `number`-th product of each of these warpgroups, counted from 1.
    """

    accumulators: Accumulators
    rows: slice
    operands: tuple[Operand, ...]
    groups: np.ndarray
    number: np.ndarray


@dataclass(frozen=True)
class Scale:
    """By what a product and the accumulators are multiplied: acc = acc * keeps + sign * product."""

    keeps: object = True  # in each lane
    sign: int = 1


def from_shared(
    w, mask, call, acc_site, acc, index, n, form, scale, b_site, b, b_index, b_major, a_site, a, a_index, a_major
):
    """acc += A @ B.T, with both operands in shared memory."""
    mask = together(w, mask, call)
    if mask is not False:
        a_flat, mask = _operand(w, a_site, a, mask, a_index, M, a_major)
    if mask is not False:
        b_flat, mask = _operand(w, b_site, b, mask, b_index, n, b_major)
    if mask is False:
        return
    caller = callers(w, mask)
    w.chunk.sample(w, a_site, a, mask, a_flat)
    w.chunk.sample(w, b_site, b, mask, b_flat)
    left, registers = _read(w, caller, a_site, a, a_flat, M, a_major)
    right, others = _read(w, caller, b_site, b, b_flat, n, b_major)
    _begin(w, mask, caller, call, acc_site, acc, index, form, scale, registers, others, (left, right))


def from_registers(w, mask, call, acc_site, acc, index, n, form, scale, b_site, b, b_index, b_major, fragment, written):
    """acc += A @ B.T, with 16 rows of A in the registers of each warp, as the fragment of `mma`.

    `written` is the line that wrote these registers, if there was no fence since; 0 otherwise.
    """
    mask = together(w, mask, call)
    if mask is not False:
        if written:
            findings.fragment_not_fenced(w, call, mask, written)
        b_flat, mask = _operand(w, b_site, b, mask, b_index, n, b_major)
    if mask is False:
        return
    caller = callers(w, mask)
    right, others = _read(w, caller, b_site, b, b_flat, n, b_major)
    given = np.stack([w.fill(register) for register in fragment], axis=-1)
    lanes = w.warps[caller.rows, START][:, None] + np.arange(WARP_LANES)
    # of lane 4 g + t, register 2 h + l is the (4 h + t)-th of row g + 8 l
    rows = given[lanes].reshape(-1, 8, 4, 2, 2).transpose(0, 4, 1, 3, 2).reshape(-1, 16, 8)
    registers = np.zeros((caller.count, WARPS, 16, 8), np.uint32)
    registers[caller.group, _quarter(w, caller.rows)] = rows
    _begin(w, mask, caller, call, acc_site, acc, index, form, scale, registers.reshape(-1, M, 8), others, (right,))


def _quarter(w, rows):
    """Which warp of its warpgroup each of these warps is."""
    return w.warps[rows, THREAD] // WARP_LANES % WARPS


def _clocks(w, rows):
    """The clocks of these warps."""
    return w.launch.clocks.of(w.warps[rows, BLOCK], w.warps[rows, THREAD] // WARP_LANES)


def _begin(w, mask, caller, call, acc_site, acc, index, form, scale, left, right, operands):
    """Adds the product of the rows in these registers, and keeps it under way."""
    n = right.shape[1]
    keeps = _agreed(w, mask, caller, call, scale.keeps)
    flat, mask = locate_local_elements(w, acc_site, acc, mask, n // 2, index, is_read=keeps)
    if mask is False:
        return
    lanes = w.active(mask)
    first = int(flat[np.argmax(lanes)])
    if (flat[lanes] != first).any():
        raise KernelError("the accumulators of `wgmma` are the same elements in every thread", call[0])
    rows = slice(first, first + n // 2)
    under_way = acc.states[Accumulators]
    if under_way.is_touched:
        findings.not_fenced(w, acc_site, acc, lanes)
        under_way.is_touched = False
    k = STEP_BYTES * 8 // form.bits
    w.chunk.launch.flops[form.flops] += n * k * w.tally(mask)
    w.launch.events.note(w, mask, "product", call[0], operands[-1].array.name, amount=n * k * WARP_LANES)
    left, right = _decoded(form, left) * np.float32(scale.sign), _decoded(form, right)
    here, mine = slice(None) if mask is None else lanes, (caller.group, _quarter(w, caller.rows))
    held = acc.data[rows, here] if keeps is True else np.where(keeps[here], acc.data[rows, here], np.float32(0))
    if form.name == "E4M3":
        sums = _of_rows(held, caller.count, *mine)
        add_products(sums, left, right)
        acc.data[rows, here] = _of_threads(sums, *mine)
    else:
        acc.data[rows, here] = held + _of_threads(np.matmul(left, right.transpose(0, 2, 1)), *mine)
    if keeps is not True:
        acc.written[rows, here] = True
    under_way.begin(rows, lanes, acc_site)
    mine = of(w)
    groups, cores = mine.number[caller.first], mine.cores
    cores.begun[mine.number[caller.rows], _quarter(w, caller.rows)] += 1
    number = cores.begun[groups, _quarter(w, caller.first)]
    w.chunk.launch.clocks.tell(_clocks(w, caller.first), cores.clocks[groups])
    mine.products.begin(Product(under_way, rows, operands, groups, number), lanes)
    w.chunk.launch.version += 1


# Row 16 w + 8 h + g and column 8 j + 2 t + c is the accumulator 4 j + 2 h + c of lane 4 g + t in warp w.


def _of_threads(sums, group, quarter):
    """The accumulators of each thread, of sums as the rows and columns of each warpgroup; the reverse of `_of_rows`."""
    n = sums.shape[2]
    parts = sums.reshape(-1, WARPS, 2, 8, n // 8, 4, 2).transpose(4, 2, 6, 0, 1, 3, 5)
    return parts.reshape(n // 2, -1, WARPS, WARP_LANES)[:, group, quarter].reshape(n // 2, -1)


def _of_rows(accumulators, count, group, quarter):
    """The rows and columns of so many warpgroups, of accumulators of threads; zeros of the warps that are not here."""
    half = len(accumulators)
    parts = np.zeros((half, count, WARPS, WARP_LANES), np.float32)
    parts[:, group, quarter] = accumulators.reshape(half, -1, WARP_LANES)
    parts = parts.reshape(half // 4, 2, 2, count, WARPS, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
    return parts.reshape(count, M, 2 * half)


def _agreed(w, mask, caller, call, keeps):
    """What the lanes say of their accumulators, in which those of a warpgroup agree; True where all keep them."""
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
    """`wgmma_fence`: the products see what these warps did to their registers."""
    for array in w.local_arrays():
        array.states[Accumulators].is_touched = False


def commit(w, mask):
    """`wgmma_commit`: the products since the last one are a group."""
    w.launch.events.note(w, mask, "commit")
    of(w).products.commit(w.active(mask))


def wait(w, mask, call, pending):
    """`wgmma_wait`: the products of all but the newest groups are done, as far as each of these warps is concerned."""
    mask = together(w, mask, call)
    if mask is False:
        return
    w.launch.events.note(w, mask, "finish", call[0], amount=pending)
    mine, rows = of(w), callers(w, mask).rows
    groups = mine.number[rows]
    ended, done = mine.products.finish(w.active(mask), pending), np.zeros(len(rows), np.int64)
    for product, lanes in ended:
        concerned = lanes[w.warps[rows, START]]  # of the warps that wait
        number = product.number[np.searchsorted(product.groups, groups[concerned])]
        done[concerned] = np.maximum(done[concerned], number)
    w.waits_for = OthersOfWarpgroup()
    while (left := mine.cores.begun[groups].min(axis=1) < done).any():
        here = np.zeros(len(w.warps), np.bool_)
        here[rows] = left
        yield call[0], here.take(w.row), ()
    w.waits_for = None
    for product, lanes in ended:
        product.accumulators.end(product.rows, lanes)
        _note_done(w, product, groups[lanes[w.warps[rows, START]]])
    w.chunk.launch.clocks.hear(_clocks(w, rows), mine.cores.clocks[groups], done)


def _note_done(w, product, groups):
    """The product of these warpgroups is done, unless other warps of theirs have noted that already."""
    cores = of(w).cores
    now = np.isin(product.groups, groups) & (cores.done[product.groups] < product.number)
    if not now.any():
        return
    done, number = product.groups[now], product.number[now]
    w.chunk.launch.clocks.note_done(cores.clocks[done], number - 1)
    for operand in product.operands:
        operand.note(w, now)
    cores.done[done] = number


class OthersOfWarpgroup:
    """What a warp waits for whose product the other warps of its warpgroup have not asked for."""

    def reason(self, lane: int) -> str:
        return " for the other warps of its warpgroup"


# --- registers of a warpgroup --------------------------------------------------------------------


class Registers:
    """How many registers a thread of each warpgroup has, in all blocks of a chunk."""

    def __init__(self, w, in_block, call):
        limit, asked = w.launch.register_limit, max(w.launch.program.families[WARPGROUPS], default=None)
        if limit is None:
            raise KernelError(
                f"the compiler ignores `{call[2]}` in a kernel whose registers nothing limits: say how many threads a "
                f"block has and how many blocks an SM holds, `@cuda.jit(launch_bounds=({w.launch.threads}, 1))`",
                call[0],
            )
        self.given = min(limit, asked or limit)  # ptxas has no use for more
        self.count = np.full((len(w.chunk.blocks), in_block), self.given, np.int64)


def set_registers(w, mask, call, count, takes):
    """`setmaxnreg`: values stay as they are; the warpgroup makes the call as one, and the registers must be there.

    `takes`: whether it is to have more than before, or less.
    """
    mask = together(w, mask, call)
    if mask is False:
        return
    chunk, mine = w.chunk, of(w)
    if "registers" not in chunk.kept:
        registers = chunk.kept["registers"] = Registers(w, mine.in_block, call)
        chunk.at_end.append(lambda: findings.check_registers(chunk, registers, call))
    counts, groups = chunk.kept["registers"].count.reshape(-1), mine.number[callers(w, mask).rows]
    had = int(counts[groups].max() if takes else counts[groups].min())
    if had > count if takes else had < count:
        raise KernelError(
            f"`{call[2]}({count})` in a thread that has {had} registers is undefined: "
            f"{'inc asks for at least as many' if takes else 'dec keeps at most as many'} as there are",
            call[0],
        )
    counts[groups] = count


# --- in a kernel's text --------------------------------------------------------------------------

# Its notes are how many registers a thread of some warpgroup asks for.
WARPGROUPS = Family(
    is_asynchronous=True,
    keeps_clocks=True,
    has_warpgroup_clocks=True,
    keeps_events=True,
    shared_states=(proxies.Unfenced,),
    local_states=(Accumulators,),
)


def _call(translator, node) -> str:
    """The code of where a call stands and what it is called, for a finding."""
    return f"({node.lineno}, {node.col_offset}, {translator.written(node.func)!r})"


def _in_shared(translator, node, array, index, major, rows):
    """The site of a read of a tile, its array, the indices of its first element and how it lies, as code."""
    subscript, found, indices = element(translator, node, array, index, ("shared",))
    if isinstance(major, MnMajor) and rows > MN_ROWS and found.type.ndim < 3:
        translator.fail(node, f"an MN-major B of {rows} columns needs an axis for its tiles of {MN_ROWS}")
    if found.type.others:
        translator.fail(node, f"`{translator.written(array)}` may be one of several arrays here: name one")
    return f"{translator.site(subscript, found, 'load')}, {found.code}, ({indices},), {translator.constant(major)}"


@dataclass(frozen=True)
class Multiply:
    """A function `(acc, index, N, A, a_index, B, b_index, FORMAT)`, or with a fragment in place of A and its index.

    Where it `has_majors`, how an operand lies follows its index; where it `is_scaled`, `keeps` and `SIGN` come last.
    """

    formats: dict[int, Format]
    has_fragment: bool = False
    has_majors: bool = False
    is_scaled: bool = False

    def translate(self, translator, node):
        count = 8 - self.has_fragment + self.has_majors * (2 - self.has_fragment)
        check_count(translator, node, count + 2 * self.is_scaled)
        acc, index, n, *operands, form = node.args[:count]
        scale = self._scale(translator, node)
        n = fixed_number(translator, node, n, "N")
        if n % 8 or not 8 <= n <= 256:
            translator.fail(node, f"N is 8 to 256 in steps of 8, not {n}")
        subscript, sums, indices = element(translator, node, acc, index, ("local",))
        if sums.type.dtype != types.float32:
            translator.fail(node, f"wgmma adds up in float32, and `{translator.written(acc)}` is {describe(sums.type)}")
        chosen = format_of(translator, node, form, self.formats)
        each = 2 + self.has_majors
        b, b_index, *b_major = operands[-each:]
        right = _in_shared(translator, node, b, b_index, self._major(translator, node, b_major, chosen), n)
        if self.has_fragment:
            written = written_since_fence(translator.source.tree, node, operands[0], translator.names)
            run, given = from_registers, f"{fragment(translator, operands[0], 4)}, {written}"
        else:
            a, a_index, *a_major = operands[:each]
            run = from_shared
            given = _in_shared(translator, node, a, a_index, self._major(translator, node, a_major, chosen), M)
        site = translator.site(subscript, sums, "store", n // 2)
        translator.emit(
            f"{translator.constant(run)}(w, {translator.mask}, {_call(translator, node)}, {site}, {sums.code}, "
            f"({indices},), {n}, {translator.constant(chosen)}, {scale}, {right}, {given})"
        )
        return Value("None", types.none)

    def _scale(self, translator, node) -> str:
        """The code of a `Scale`."""
        if not self.is_scaled:
            return translator.constant(Scale())
        keeps = translator.condition(node.args[-2])
        sign = fixed_number(translator, node, node.args[-1], "the sign of a product")
        if sign not in (1, -1):
            translator.fail(node, f"the sign of a product is 1 or -1, not {sign}")
        return f"{translator.constant(Scale)}({keeps.code}, {sign})"

    def _major(self, translator, node, major, form) -> KMajor | MnMajor:
        """How an operand lies, which its format must allow."""
        if not self.has_majors:
            return MAJORS[0]
        number = fixed_number(translator, node, major[0], "how an operand lies")
        if number not in range(len(MAJORS)):
            translator.fail(node, f"an operand lies `ptx.K_MAJOR` or `ptx.MN_MAJOR`, and {number} is neither")
        if number and form.bits != 16:
            translator.fail(node, "operands of BF16 or FP16 may lie MN-major: copy others into rows along k")
        return MAJORS[number]


class Wait:
    """A function `(pending)`."""

    def translate(self, translator, node):
        check_count(translator, node, 1)
        pending = fixed_number(translator, node, node.args[0], "how many groups may be under way")
        waiting_line(translator, node)
        run = translator.constant(wait)
        translator.emit(f"yield from {run}(w, {translator.mask}, {_call(translator, node)}, {pending})")
        return Value("None", types.none)


@dataclass(frozen=True)
class SetRegisters:
    """A function `(count)` that changes how many registers the threads of a warpgroup have."""

    takes: bool

    def translate(self, translator, node):
        check_count(translator, node, 1)
        count = fixed_number(translator, node, node.args[0], "a number of registers")
        if count % 8 or not 24 <= count <= 256:
            translator.fail(node, f"a thread has 24 to 256 registers, a multiple of 8, not {count}")
        if self.takes:
            translator.program.families[WARPGROUPS].add(count)
        run = translator.constant(set_registers)
        translator.emit(f"{run}(w, {translator.mask}, {_call(translator, node)}, {count}, {self.takes})")
        return Value("None", types.none)
