"""The tensor cores of one warp: matrices from shared memory into fragments and back, and their product.

With g = lane // 4 and t = lane % 4, register r of A holds row g + 8 (r % 2) and, where a register has p numbers, the
columns p t to p t + p - 1, 4 p (r // 2) columns on; a register of B the same of column g, with rows in place of
columns; the accumulators are rows g and g + 8, columns 2 t and 2 t + 1. (PTX ISA, "Matrix Fragments for mma.m16n8k16"
and its neighbours, `ldmatrix`, `stmatrix`.)
"""

from dataclasses import dataclass

import numpy as np
from numba import njit, types

from labkit.ptx.formats.on_lanes import Format, format_of
from labkit.simulator import collectives, memory, numba_types
from labkit.simulator.counters import count_shared
from labkit.simulator.disturbance import PRODUCTS
from labkit.simulator.lanes import intersect
from labkit.simulator.operands import check_count, element, locate_local_elements, locate_vectors, nonnegative_lanes
from labkit.simulator.slices import Either
from labkit.simulator.values import Tuple, Value, describe, items_of
from labkit.simulator.warps import START
from labkit.trace import WARP_LANES

ROW_BYTES = 16  # of an 8 x 8 matrix of 16-bit elements
ROWS = 8
M, N = 16, 8  # of a product


# --- in a translation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadMatrices:
    """A function `(tile, index)` that gives `count` registers, one of each matrix; see `pieces_of_register`."""

    count: int
    transposed: bool = False

    def translate(self, translator, node):
        number, tile, index = _rows(translator, node, "load", 2)
        run = translator.constant(load)
        code = f"{run}(w, {number}, {tile}, {translator.mask}, {_call(translator, node)}, {self.count}, "
        return translator.temp(f"{code}{self.transposed}, {index})", Tuple((types.uint32,) * self.count))


@dataclass(frozen=True)
class StoreMatrices:
    """A function `(tile, index, ...)` of `count` registers that writes as many matrices."""

    count: int
    transposed: bool = False

    def translate(self, translator, node):
        number, tile, index = _rows(translator, node, "store", 2 + self.count, 2 if self.transposed else 4)
        given = [translator.scalar(value, "a register of a matrix") for value in node.args[2:]]
        values = ", ".join(translator.converted(value, types.uint32) for value in given)
        run = translator.constant(store)
        translator.emit(
            f"{run}(w, {number}, {tile}, {translator.mask}, {_call(translator, node)}, ({values},), "
            f"{self.transposed}, {index})"
        )
        return Value("None", types.none)


@dataclass(frozen=True)
class Multiply:
    """A function `(acc, index, a, b, FORMAT)` that adds a product of fragments to four accumulators."""

    formats: dict[int, Format]
    sums: dict[int, types.Type]  # the type that each format adds up in

    def translate(self, translator, node):
        check_count(translator, node, 5)
        subscript, acc, index = element(translator, node, *node.args[:2], ("local",))
        a, b = (fragment(translator, part, count) for part, count in zip(node.args[2:4], (4, 2)))
        if acc.type.others:
            translator.fail(node, f"`{translator.written(node.args[0])}` may be one of several arrays here; name one")
        chosen = format_of(translator, node, node.args[4], self.formats)
        wanted = next(self.sums[number] for number, each in self.formats.items() if each is chosen)
        if acc.type.dtype != wanted:
            translator.fail(
                node,
                f"{chosen.name} adds up in {wanted}, and `{translator.written(node.args[0])}` is "
                f"{describe(acc.type)}: make the accumulators of that type",
            )
        number = translator.site(subscript, acc, "store", 4)
        run, kept = translator.constant(multiply), translator.constant(chosen)
        translator.emit(
            f"{run}(w, {number}, {acc.code}, {translator.mask}, {_call(translator, node)}, {a}, {b}, {kept}, {index})"
        )
        return Value("None", types.none)


def fragment(translator, node, count) -> str:
    """The code of a fragment, a tuple of so many registers."""
    value = translator.kept(translator.expression(node))
    items = items_of(value) if isinstance(value.type, Tuple) else []
    if len(items) != count or not all(isinstance(item.type, types.Integer) for item in items):
        translator.fail(
            node,
            f"`{translator.written(node)}` is {describe(value.type)}, and a fragment here is a tuple of {count} "
            "uint32, as `ptx.ldmatrix4`, `ptx.pack2` and `ptx.to_tf32` give them",
        )
    return f"({', '.join(translator.converted(item, types.uint32) for item in items)})"


def _rows(translator, node, kind, count, most_bytes=4):
    """The site, the array and the indices of where each lane's row begins, of elements that are no larger than that."""
    check_count(translator, node, count)
    subscript, tile, index = element(translator, node, *node.args[:2], ("shared",))
    itemsize = numba_types.dtype_of(tile.type.dtype).itemsize
    if itemsize > most_bytes:
        sizes = "1, 2 or 4" if most_bytes == 4 else "1 or 2"
        translator.fail(
            node,
            f"`{translator.written(node.func)}` takes rows of {ROW_BYTES} bytes from elements of {sizes} bytes, not "
            f"of {describe(tile.type.dtype)}",
        )
    return translator.site(subscript, tile, kind, ROW_BYTES // itemsize), tile.code, index


def _call(translator, node) -> str:
    """The code of where a call stands and what it is called, for a finding."""
    return f"({node.lineno}, {node.col_offset}, {translator.written(node.func)!r})"


# --- on lanes --------------------------------------------------------------------------------------


def pieces_of_register(w, matrix, transposed):
    """What a lane's register of a matrix is made of: (the lane that names the row, its first byte there, bytes)."""
    g, t, first = w.lane // 4, w.lane % 4, w.first_lane + ROWS * matrix
    if transposed:
        return [(first + 2 * t + i, 2 * g, 2) for i in range(2)]
    return [(first + g, 4 * t, 4)]


def _places(w, array, flat, matrix, transposed):
    """(elements, the bits of the register that each has, and how far right they stand in the element)."""
    shift = 0
    for lane, byte, count in pieces_of_register(w, matrix, transposed):
        place = flat.take(lane, mode="clip") + byte // array.itemsize
        for i in range(max(1, count // array.itemsize)):
            yield place + i, shift, byte % array.itemsize * 8 if array.itemsize > count else 0
            shift += 8 * min(count, array.itemsize)


def load(w, site, array, mask, call, count, transposed, *index):
    """A register of each of `count` matrices, whose rows the lanes name eight by eight."""
    if isinstance(array, Either):
        asked = call, count, transposed, *index
        return memory.access_each(w, array, mask, lambda a, own: load(w, site[a.name], a, own, *asked))
    flat, mask = _named_rows(w, site, array, mask, call, count, index)
    if mask is False:
        return (np.uint32(0),) * count
    piece = np.uint32(0xFFFF if transposed else 0xFFFFFFFF)
    registers = []
    for matrix in range(count):
        register = np.zeros(w.lanes, np.uint32)
        for place, shift, within in _places(w, array, flat, matrix, transposed):
            value = memory.read(w, site, array, mask, place).view(f"u{array.itemsize}").astype(np.uint32)
            register |= (value >> np.asarray(within, np.uint32) & piece) << np.uint32(shift)
        registers.append(register)
    return tuple(registers)


def store(w, site, array, mask, call, values, transposed, *index):
    """Writes a register of each matrix to the rows that the lanes name."""
    if isinstance(array, Either):
        memory.access_each(
            w, array, mask, lambda a, own: store(w, site[a.name], a, own, call, values, transposed, *index)
        )
        return
    flat, mask = _named_rows(w, site, array, mask, call, len(values), index)
    if mask is False:
        return
    dtype = np.dtype(f"u{array.itemsize}")
    for matrix, value in enumerate(values):
        for place, shift, _ in _places(w, array, flat, matrix, transposed):
            part = (w.fill(value) >> np.uint32(shift)).astype(dtype).view(array.dtype)
            memory.write(w, site, array, mask, place, part)


def _named_rows(w, site, array, mask, call, count, index):
    """Where each lane's row begins, and the lanes of whole warps whose rows can all be reached; counts the access.

    A pass through the banks serves eight rows.
    """
    mask = collectives.whole_warps(w, mask, call)
    named = intersect(mask, w.lane < ROWS * count)
    reached = nonnegative_lanes(w, site, array, named, index) if named is not False else False
    if reached is False:
        return None, False
    flat, reached = locate_vectors(w, site, array, reached, ROW_BYTES, index)
    if reached is not named:
        lost = w.active(named) & ~(np.zeros(w.lanes, np.bool_) if reached is False else w.active(reached))
        mask = intersect(mask, ~np.logical_or.reduceat(lost, w.warps[:, START]).take(w.row))
        named = False if mask is False else intersect(named, mask)
        if named is False:
            return None, False
    elements, totals = ROW_BYTES // array.itemsize, w.chunk.launch.counts[site]
    lanes, everyone = w.active(named), named is None
    count_shared(flat, array.address, array.itemsize, elements, array.elements, lanes, everyone, False, w.warps, totals)
    w.chunk.sample(w, site, array, named, flat)
    return flat, mask


def multiply(w, site, array, mask, call, a, b, form, *index):
    """Adds the product of two fragments to the accumulators, in float32 or int32."""
    mask = collectives.whole_warps(w, mask, call)
    if mask is False:
        return
    flat, mask = locate_local_elements(w, site, array, mask, 4, index)
    if mask is False:
        return
    w.chunk.launch.flops[form.flops] += 2 * M * N * 8 * form.each // WARP_LANES * w.tally(mask)
    a, b = (form.decode(np.stack([w.fill(register) for register in fragment])) for fragment in (a, b))
    a = w.chunk.launch.disturbance.scaled(PRODUCTS, a)
    _multiply(a, b, array.data, flat, w.active(mask), w.warps[:, START])


@njit(cache=True)
def _multiply(a, b, data, flat, lanes, starts):
    each = a.shape[2]
    left, right = np.empty((M, 8 * each), a.dtype), np.empty((8 * each, N), a.dtype)
    sums = np.empty((M, N), data.dtype)
    for start in starts:
        if not lanes[start]:
            continue
        for lane in range(WARP_LANES):
            g, t, at = lane // 4, lane % 4, start + lane
            for r in range(4):
                for e in range(each):
                    left[g + 8 * (r % 2), each * t + e + 4 * each * (r // 2)] = a[r, at, e]
                sums[g + 8 * (r // 2), 2 * t + r % 2] = data[flat[at] + r, at]
            for r in range(2):
                for e in range(each):
                    right[each * t + e + 4 * each * r, g] = b[r, at, e]
        for m in range(M):
            for k in range(8 * each):
                for n in range(N):
                    sums[m, n] += left[m, k] * right[k, n]
        for lane in range(WARP_LANES):
            g, t, at = lane // 4, lane % 4, start + lane
            for r in range(4):
                data[flat[at] + r, at] = sums[g + 8 * (r // 2), 2 * t + r % 2]
