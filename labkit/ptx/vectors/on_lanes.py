"""Vector accesses: an instruction by which each lane reads or writes neighbouring elements of an array at once.

Counted as one access of all their bytes. The banks of shared memory serve 128 bytes in a pass, so a warp that moves
16 bytes a lane takes four passes, a quarter of it in each, or more (CUDA C++ Best Practices Guide, "Shared Memory and
Memory Banks"; measured with Nsight Compute). A load of which lanes share the elements takes two: see counters.py.
"""

from dataclasses import dataclass

from numba import types

from labkit.simulator import memory, numba_types
from labkit.simulator.operands import check_count, element, locate_vectors
from labkit.simulator.slices import Either
from labkit.simulator.values import Tuple, Value, describe


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
    check_count(translator, node, count)
    subscript, array, index = element(translator, node, *node.args[:2], ("global", "shared"))
    if access.elements * numba_types.dtype_of(array.type.dtype).itemsize not in access.widths_bytes:
        widths = " or ".join(map(str, access.widths_bytes))
        translator.fail(
            node,
            f"`{translator.written(node.func)}` moves {widths} bytes at once, and {access.elements} elements of "
            f"{describe(array.type.dtype)} are not that many",
        )
    return subscript, array, index


def load(w, site, array, mask, elements, *index):
    """The neighbours that the lanes of `mask` read, a tuple of `elements` values; 0 where the access is wrong."""
    if isinstance(array, Either):
        return memory.access_each(w, array, mask, lambda a, own: load(w, site, a, own, elements, *index))
    site = site[array.name] if isinstance(site, dict) else site
    flat, mask = locate_vectors(w, site, array, mask, elements * array.itemsize, index)
    if mask is False:
        return (array.dtype.type(0),) * elements
    memory.count_accesses(w, site, array, flat, mask, True, elements)
    w.chunk.sample(w, site, array, mask, flat)
    return tuple(memory.read(w, site, array, mask, flat + i) for i in range(elements))


def store(w, site, array, mask, values, *index):
    """Writes a tuple of values to neighbouring elements."""
    if isinstance(array, Either):
        memory.access_each(w, array, mask, lambda a, own: store(w, site, a, own, values, *index))
        return
    site = site[array.name] if isinstance(site, dict) else site
    flat, mask = locate_vectors(w, site, array, mask, len(values) * array.itemsize, index)
    if mask is False:
        return
    memory.count_accesses(w, site, array, flat, mask, False, len(values))
    w.chunk.sample(w, site, array, mask, flat)
    for i, value in enumerate(values):
        memory.write(w, site, array, mask, flat + i, w.fill(value))
