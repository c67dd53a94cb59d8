"""Tensor cores of one warp on lanes: matrices from shared memory into fragments and back, and their product.

With g = lane // 4, t = lane % 4 and p numbers per register, register r of A holds row g + 8 (r % 2). Its columns are
p t to p t + p - 1, plus 4 p (r // 2). A register of B holds the same of column g, with rows in place of columns. The
accumulators are rows g and g + 8, columns 2 t and 2 t + 1. (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its
neighbours, `ldmatrix`, `stmatrix`.)

`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
`w.chunk` has the blocks of the launch that run together.
"""

from dataclasses import dataclass

import numpy as np

from labkit.ptx.formats.on_lanes import Format, find_format
from labkit.ptx.translation import call_site, emit_call
from labkit.simulator import collectives, memory, numba_types
from labkit.simulator.counters import count_shared
from labkit.simulator.disturbance import PRODUCTS
from labkit.simulator.lanes import intersect
from labkit.simulator.operands import (
    check_argument_count,
    drop_negative_indices,
    locate_local_elements,
    locate_vectors,
    resolve_element,
)
from labkit.simulator.seam import njit, types
from labkit.simulator.slices import Either
from labkit.simulator.values import Tuple, describe, items_of
from labkit.simulator.warps import START
from labkit.trace import WARP_LANES

ROW_BYTES = 16  # of an 8 x 8 matrix of 16-bit elements
ROWS = 8
M, N = 16, 8  # of a product


# --- in a translation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadMatrices:
    """Call `(tile, index)` that returns `count` registers, one per matrix; see `register_pieces`."""

    count: int
    transposed: bool = False

    def translate(self, translator, node):
        number, tile, index = _rows(translator, node, "load", 2)
        run = translator.constant(load)
        code = f"{run}(w, {number}, {tile}, {translator.mask}, {call_site(translator, node)}, {self.count}, "
        return translator.temp(f"{code}{self.transposed}, {index})", Tuple((types.uint32,) * self.count))


@dataclass(frozen=True)
class StoreMatrices:
    """Call `(tile, index, ...)` that writes `count` registers, one per matrix."""

    count: int
    transposed: bool = False

    def translate(self, translator, node):
        number, tile, index = _rows(translator, node, "store", 2 + self.count, 2 if self.transposed else 4)
        registers = [translator.scalar(value, "a register of a matrix") for value in node.args[2:]]
        values = ", ".join(translator.converted(value, types.uint32) for value in registers)
        call = call_site(translator, node)
        return emit_call(translator, store, number, tile, translator.mask, call, f"({values},)", self.transposed, index)


@dataclass(frozen=True)
class Multiply:
    """Call `(acc, index, a, b, FORMAT)` that adds a product of fragments to four accumulators."""

    formats: dict[int, Format]
    accumulator_types: dict[int, types.Type]  # by the format's number

    def translate(self, translator, node):
        check_argument_count(translator, node, 5)
        subscript, acc, index = resolve_element(translator, node, *node.args[:2], ("local",))
        a, b = (fragment_code(translator, part, count) for part, count in zip(node.args[2:4], (4, 2)))
        if acc.type.others:
            translator.fail(node, f"`{translator.written(node.args[0])}` may be one of several arrays here; name one")
        format = find_format(translator, node, node.args[4], self.formats)
        needed = next(self.accumulator_types[number] for number, known in self.formats.items() if known is format)
        if acc.type.dtype != needed:
            translator.fail(
                node,
                f"{format.name} adds up in {needed}, and `{translator.written(node.args[0])}` is "
                f"{describe(acc.type)}: make the accumulators of that type",
            )
        number = translator.site(subscript, acc, "store", 4)
        call = call_site(translator, node)
        operands = number, acc.code, translator.mask, call, a, b, translator.constant(format), index
        return emit_call(translator, multiply, *operands)


def fragment_code(translator, node, count) -> str:
    """Return the code of a fragment, a tuple of `count` registers."""
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
    """Return site, array and indices of each lane's row, of elements of at most `most_bytes`."""
    check_argument_count(translator, node, count)
    subscript, tile, index = resolve_element(translator, node, *node.args[:2], ("shared",))
    itemsize = numba_types.dtype_of(tile.type.dtype).itemsize
    if itemsize > most_bytes:
        sizes = "1, 2 or 4" if most_bytes == 4 else "1 or 2"
        translator.fail(
            node,
            f"`{translator.written(node.func)}` takes rows of {ROW_BYTES} bytes from elements of {sizes} bytes, not "
            f"of {describe(tile.type.dtype)}",
        )
    return translator.site(subscript, tile, kind, ROW_BYTES // itemsize), tile.code, index


# --- on lanes --------------------------------------------------------------------------------------


def register_pieces(w, matrix, transposed):
    """Return the parts of a lane's register of a matrix: (lane that names the row, first byte of the row, bytes)."""
    g, t, first = w.lane // 4, w.lane % 4, w.first_lane + ROWS * matrix
    if transposed:
        return [(first + 2 * t + i, 2 * g, 2) for i in range(2)]
    return [(first + g, 4 * t, 4)]


def _register_elements(w, array, flat, matrix, transposed):
    """Yield (elements, bit of the register at which each begins, bit of the element at which it is stored)."""
    shift = 0
    for lane, byte, count in register_pieces(w, matrix, transposed):
        element = flat.take(lane, mode="clip") + byte // array.itemsize
        for i in range(max(1, count // array.itemsize)):
            yield element + i, shift, byte % array.itemsize * 8 if array.itemsize > count else 0
            shift += 8 * min(count, array.itemsize)


def load(w, site, array, mask, call, count, transposed, *index):
    """Return a register of each of `count` matrices, whose rows the lanes name eight by eight."""
    if isinstance(array, Either):
        arguments = call, count, transposed, *index
        return memory.access_each(w, array, mask, lambda a, lanes: load(w, site[a.name], a, lanes, *arguments))
    flat, mask = _row_addresses(w, site, array, mask, call, count, index)
    if mask is False:
        return (np.uint32(0),) * count
    register_part = np.uint32(0xFFFF if transposed else 0xFFFFFFFF)
    registers = []
    for matrix in range(count):
        register = np.zeros(w.lanes, np.uint32)
        for elements, shift, element_bit in _register_elements(w, array, flat, matrix, transposed):
            value = memory.read(w, site, array, mask, elements).view(f"u{array.itemsize}").astype(np.uint32)
            register |= (value >> np.asarray(element_bit, np.uint32) & register_part) << np.uint32(shift)
        registers.append(register)
    return tuple(registers)


def store(w, site, array, mask, call, values, transposed, *index):
    """Write a register of each matrix to the rows that the lanes name."""
    if isinstance(array, Either):
        arguments = call, values, transposed, *index
        memory.access_each(w, array, mask, lambda a, lanes: store(w, site[a.name], a, lanes, *arguments))
        return
    flat, mask = _row_addresses(w, site, array, mask, call, len(values), index)
    if mask is False:
        return
    dtype = np.dtype(f"u{array.itemsize}")
    for matrix, value in enumerate(values):
        for elements, shift, _ in _register_elements(w, array, flat, matrix, transposed):
            part = (w.fill(value) >> np.uint32(shift)).astype(dtype).view(array.dtype)
            memory.write(w, site, array, mask, elements, part)


def _row_addresses(w, site, array, mask, call, count, index):
    """Return where each lane's row begins, and the lanes of warps whose rows are all valid; count the access.

    A wavefront serves eight rows.
    """
    mask = collectives.keep_whole_warps(w, mask, call)
    naming = intersect(mask, w.lane < ROWS * count)  # lanes whose index names a row
    valid = drop_negative_indices(w, site, array, naming, index) if naming is not False else False
    if valid is False:
        return None, False
    flat, valid = locate_vectors(w, site, array, valid, ROW_BYTES, index)
    if valid is not naming:
        invalid = w.active(naming) & ~(np.zeros(w.lanes, np.bool_) if valid is False else w.active(valid))
        mask = intersect(mask, ~np.logical_or.reduceat(invalid, w.warps[:, START]).take(w.row))
        naming = False if mask is False else intersect(naming, mask)
        if naming is False:
            return None, False
    elements, totals = ROW_BYTES // array.itemsize, w.chunk.launch.counts[site]
    lanes, is_whole = w.active(naming), naming is None
    count_shared(flat, array.address, array.itemsize, elements, array.elements, lanes, is_whole, False, w.warps, totals)
    w.chunk.sample(w, site, array, naming, flat)
    return flat, mask


def multiply(w, site, array, mask, call, a, b, format, *index):
    """Add the product of two fragments to the accumulators, in float32 or int32."""
    mask = collectives.keep_whole_warps(w, mask, call)
    if mask is False:
        return
    flat, mask = locate_local_elements(w, site, array, mask, 4, index)
    if mask is False:
        return
    w.chunk.launch.flops[format.flops] += 2 * M * N * 8 * format.per_register // WARP_LANES * w.tally(mask)
    a, b = (format.decode(np.stack([w.fill(register) for register in fragment])) for fragment in (a, b))
    a = w.chunk.launch.disturbance.disturb(PRODUCTS, a)
    _multiply(a, b, array.data, flat, w.active(mask), w.warps[:, START])


@njit(cache=True)
def _multiply(a, b, data, flat, lanes, starts):
    per_register = a.shape[2]
    left, right = np.empty((M, 8 * per_register), a.dtype), np.empty((8 * per_register, N), a.dtype)
    sums = np.empty((M, N), data.dtype)
    for start in starts:
        if not lanes[start]:
            continue
        for lane in range(WARP_LANES):
            g, t, i = lane // 4, lane % 4, start + lane
            for r in range(4):
                for e in range(per_register):
                    left[g + 8 * (r % 2), per_register * t + e + 4 * per_register * (r // 2)] = a[r, i, e]
                sums[g + 8 * (r // 2), 2 * t + r % 2] = data[flat[i] + r, i]
            for r in range(2):
                for e in range(per_register):
                    right[per_register * t + e + 4 * per_register * r, g] = b[r, i, e]
        for m in range(M):
            for k in range(8 * per_register):
                for n in range(N):
                    sums[m, n] += left[m, k] * right[k, n]
        for lane in range(WARP_LANES):
            g, t, i = lane // 4, lane % 4, start + lane
            for r in range(4):
                data[flat[i] + r, i] = sums[g + 8 * (r // 2), 2 * t + r % 2]
