"""Vector accesses: an instruction by which each lane reads or writes neighbouring elements of an array at once.

Counted as one access of all their bytes. The banks of shared memory serve 128 bytes in a pass, so a warp that moves
16 bytes a lane takes four passes, a quarter of it in each, or more (CUDA C++ Best Practices Guide, "Shared Memory and
Memory Banks"; measured with Nsight Compute). A load of which lanes share the elements takes two: see counters.py.
"""

import ast
from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator import memory, numba_types
from labkit.simulator.errors import LaunchError
from labkit.simulator.slices import Either
from labkit.simulator.translator.values import Tuple, Value, describe


@dataclass(frozen=True)
class VectorLoad:
    """A function `(array, index)` that gives `elements` neighbours; together they have one of `widths_bytes`."""

    elements: int
    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        subscript, array, index = _place(translator, node, self, 2)
        number = translator.site(subscript, array, "load", self.elements)
        run = translator.constant(load)
        code = f"{run}(w, {number}, {array.code}, {translator.mask}, {self.elements}, {index})"
        return translator.temp(code, Tuple((array.type.dtype,) * self.elements))


@dataclass(frozen=True)
class VectorStore:
    """A function `(array, index, ...)` that writes `elements` neighbours; as `VectorLoad`."""

    elements: int
    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        subscript, array, index = _place(translator, node, self, 2 + self.elements)
        given = [translator.scalar(value, "a vector store") for value in node.args[2:]]
        values = ", ".join(translator.converted(value, array.type.dtype) for value in given)
        number = translator.site(subscript, array, "store", self.elements)
        run = translator.constant(store)
        translator.emit(f"{run}(w, {number}, {array.code}, {translator.mask}, ({values}), {index})")
        return Value("None", types.none)


def _place(translator, node, access, count):
    """The subscript that the first two arguments stand for, its array, and the code of its indices."""
    written = translator.written(node.func)
    if len(node.args) != count or node.keywords:
        translator.fail(node, f"`{written}` takes {count} arguments by position, not {len(node.args)}")
    subscript = ast.copy_location(ast.Subscript(node.args[0], node.args[1], ast.Load()), node)
    ast.fix_missing_locations(subscript)
    array, index = translator.element(subscript)
    if array.type.space not in ("global", "shared"):
        translator.fail(node, f"`{written}` reaches global and shared arrays; use a plain index for a local one")
    if access.elements * numba_types.dtype_of(array.type.dtype).itemsize not in access.widths_bytes:
        widths = " or ".join(map(str, access.widths_bytes))
        translator.fail(
            node,
            f"`{written}` moves {widths} bytes at once, and {access.elements} elements of "
            f"{describe(array.type.dtype)} are not that many",
        )
    return subscript, array, ", ".join(i.code for i in index)


def load(w, site, array, mask, elements, *index):
    """The neighbours that the lanes of `mask` read, a tuple of `elements` values; 0 where the access is wrong."""
    if isinstance(array, Either):
        return memory.of_each(w, array, mask, lambda a, own: load(w, site[a.name], a, own, elements, *index))
    flat, mask = _first(w, site, array, mask, elements, index)
    if mask is False:
        return (array.dtype.type(0),) * elements
    memory.count_accesses(w, site, array, flat, mask, True, elements)
    w.chunk.sample(w, site, array, mask, flat)
    return tuple(memory.read(w, site, array, mask, flat + i) for i in range(elements))


def store(w, site, array, mask, values, *index):
    """Writes a tuple of values to neighbouring elements."""
    if isinstance(array, Either):
        memory.of_each(w, array, mask, lambda a, own: store(w, site[a.name], a, own, values, *index))
        return
    flat, mask = _first(w, site, array, mask, len(values), index)
    if mask is False:
        return
    memory.count_accesses(w, site, array, flat, mask, False, len(values))
    w.chunk.sample(w, site, array, mask, flat)
    for i, value in enumerate(values):
        memory.write(w, site, array, mask, flat + i, w.fill(value))


def _first(w, site, array, mask, elements, index):
    """Where each lane's first element lies, and the lanes whose vector is inside the array and aligned."""
    if np.any(array.strides[-1] != 1):
        raise LaunchError(f"a vector access needs an array in C order: pass a copy, `{array.name}.copy()`")
    log, active = w.chunk.launch.log, w.active
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    last = np.where(index[-1] < 0, index[-1] + array.shape[-1], index[-1]) + elements - 1
    outside = last >= array.shape[-1]
    if (outside & active(mask)).any():
        log.outside(w, site, array, outside & active(mask), (*index[:-1], last))
    width_bytes = elements * array.itemsize
    byte = array.address + (flat % array.elements if array.space == "shared" else flat) * array.itemsize
    misaligned = ~outside & ((byte % width_bytes != 0) | (array.alignment < width_bytes))
    if (misaligned & active(mask)).any():
        log.misaligned(w, site, array, misaligned & active(mask), index, byte, width_bytes)
    wrong = outside | misaligned
    if not np.any(wrong):
        return flat, mask
    right = active(mask) & ~wrong
    return np.where(wrong, 0, flat), right if right.any() else False
