"""Vector accesses on lanes: each lane reads or writes neighbouring elements of an array at once.

Counted as one access of all their bytes. Shared memory serves 128 bytes per wavefront, so a warp that moves 16 bytes
per lane takes four wavefronts, a quarter of its lanes each, or more (CUDA C++ Best Practices Guide, "Shared Memory and
Memory Banks"; measured with Nsight Compute). A load whose lanes share elements in pairs takes two.
`w` is the warp set that calls, `mask` its lanes (None: all, False: none), `site` the number of an access in the source.
"""

from dataclasses import dataclass

from labkit.ptx.translation import emit_call
from labkit.simulator import memory, numba_types
from labkit.simulator.operands import check_argument_count, locate_vectors, resolve_element
from labkit.simulator.slices import Either
from labkit.simulator.values import Tuple, describe


@dataclass(frozen=True)
class VectorLoad:
    """Call `(array, index)` that returns `elements` neighbours, which have one of `widths_bytes` together."""

    elements: int
    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        subscript, array, index = _vector_element(translator, node, self, 2)
        number = translator.site(subscript, array, "load", self.elements)
        run = translator.constant(load)
        code = f"{run}(w, {number}, {array.code}, {translator.mask}, {self.elements}, {index})"
        return translator.temp(code, Tuple((array.type.dtype,) * self.elements))


@dataclass(frozen=True)
class VectorStore:
    """Call `(array, index, ...)` that writes `elements` neighbours; see `VectorLoad`."""

    elements: int
    widths_bytes: tuple[int, ...]

    def translate(self, translator, node):
        subscript, array, index = _vector_element(translator, node, self, 2 + self.elements)
        scalars = [translator.scalar(value, "a vector store") for value in node.args[2:]]
        values = ", ".join(translator.converted(value, array.type.dtype) for value in scalars)
        number = translator.site(subscript, array, "store", self.elements)
        return emit_call(translator, store, number, array.code, translator.mask, f"({values})", index)


def _vector_element(translator, node, access, count):
    """Return the subscript of the first two arguments, its array, and the code of its indices."""
    check_argument_count(translator, node, count)
    subscript, array, index = resolve_element(translator, node, *node.args[:2], ("global", "shared"))
    if access.elements * numba_types.dtype_of(array.type.dtype).itemsize not in access.widths_bytes:
        widths = " or ".join(map(str, access.widths_bytes))
        translator.fail(
            node,
            f"`{translator.written(node.func)}` moves {widths} bytes at once, and {access.elements} elements of "
            f"{describe(array.type.dtype)} are not that many",
        )
    return subscript, array, index


def load(w, site, array, mask, elements, *index):
    """Return the neighbours that the lanes of `mask` read, a tuple of `elements` values; 0 for invalid accesses."""
    if isinstance(array, Either):
        return memory.access_each(w, array, mask, lambda a, lanes: load(w, site, a, lanes, elements, *index))
    site = site[array.name] if isinstance(site, dict) else site
    flat, mask = locate_vectors(w, site, array, mask, elements * array.itemsize, index)
    if mask is False:
        return (array.dtype.type(0),) * elements
    memory.count_accesses(w, site, array, flat, mask, True, elements)
    w.chunk.sample(w, site, array, mask, flat)
    return tuple(memory.read(w, site, array, mask, flat + i) for i in range(elements))


def store(w, site, array, mask, values, *index):
    """Write a tuple of values to neighbouring elements."""
    if isinstance(array, Either):
        memory.access_each(w, array, mask, lambda a, lanes: store(w, site, a, lanes, values, *index))
        return
    site = site[array.name] if isinstance(site, dict) else site
    flat, mask = locate_vectors(w, site, array, mask, len(values) * array.itemsize, index)
    if mask is False:
        return
    memory.count_accesses(w, site, array, flat, mask, False, len(values))
    w.chunk.sample(w, site, array, mask, flat)
    for i, value in enumerate(values):
        memory.write(w, site, array, mask, flat + i, w.fill(value))
