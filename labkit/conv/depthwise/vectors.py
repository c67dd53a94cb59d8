"""Vectors of up to four words of an image, converted to and from float32: neighbouring channels, or columns.

Constants of the step choose the access; the host sets them for a format and a width by `vector_constants`:

    ELEMENT     WORDS       an image holds                  access
    float32     1, 2, 4     float32                         4, 8, 16 bytes
    uint32      1, 2, 4     16-bit numbers, two in a word   4, 8, 16 bytes
    uint16      1           16-bit numbers                  2 bytes

`FORMAT` is that of 16-bit numbers.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_bits, as_words, flatten
from labkit.formats import Format

ELEMENT, WORDS, FORMAT = np.float32, 4, ptx.BF16
WIDTH = 4  # numbers of a vector
PACKED = ELEMENT is np.uint32
IS_FLOAT32 = ELEMENT is np.float32
LOW = np.uint32(0xFFFF)  # mask of the lower number in a word


@cuda.jit(device=True)
def load_vectors(x, i, step, vectors, first, end, raw):
    """Load vectors, unconverted, `step` elements apart from element i on; zeros for those that are not in the row.

    The first vector has the number `first`, and those in the row have numbers below `end`. Numbers are unsigned: before
    the row they are large.
    """
    for k in range(vectors):
        for word in range(WORDS):
            raw[k * WORDS + word] = ELEMENT(0)
        if np.uint32(first + np.uint32(k)) < end:
            source = np.uint32(i + np.uint32(k) * step)
            if WORDS == 4:
                raw[k * 4], raw[k * 4 + 1], raw[k * 4 + 2], raw[k * 4 + 3] = ptx.load4(x, source)
            elif WORDS == 2:
                raw[k * 2], raw[k * 2 + 1] = ptx.load2(x, source)
            else:
                raw[k] = x[source]


@cuda.jit(device=True)
def unpack_vectors(raw, elements, values):
    """Convert what `load_vectors` loaded to float32."""
    for k in range(elements):
        if PACKED:
            values[2 * k], values[2 * k + 1] = ptx.unpack2(raw[k], FORMAT)
        else:
            values[k] = to_float32(raw[k])


@cuda.jit(device=True)
def to_float32(value):
    """Convert a single number."""
    if IS_FLOAT32:
        return value
    number, _ = ptx.unpack2(np.uint32(value), FORMAT)
    return number


@cuda.jit(device=True)
def from_float32(value):
    """Round to a single number."""
    if IS_FLOAT32:
        return value
    return np.uint16(ptx.pack2(value, value, FORMAT) & LOW)


@cuda.jit(device=True)
def store_vectors(y, i, step, vectors, first, end, values, row):
    """Store `values[row]` as vectors, as `load_vectors` loads them, but those that are not in the row."""
    for k in range(vectors):
        if np.uint32(first + np.uint32(k)) < end:
            target, j = np.uint32(i + np.uint32(k) * step), k * WIDTH
            if PACKED:
                a = ptx.pack2(values[row, j], values[row, j + 1], FORMAT)
                if WORDS == 1:
                    y[target] = a
                else:
                    b = ptx.pack2(values[row, j + 2], values[row, j + 3], FORMAT)
                    if WORDS == 2:
                        ptx.store2(y, target, a, b)
                    else:
                        c = ptx.pack2(values[row, j + 4], values[row, j + 5], FORMAT)
                        d = ptx.pack2(values[row, j + 6], values[row, j + 7], FORMAT)
                        ptx.store4(y, target, a, b, c, d)
            elif WORDS == 4:
                ptx.store4(y, target, values[row, j], values[row, j + 1], values[row, j + 2], values[row, j + 3])
            elif WORDS == 2:
                ptx.store2(y, target, values[row, j], values[row, j + 1])
            else:
                y[target] = from_float32(values[row, j])


def vector_constants(format: Format, width: int) -> dict:
    """Return the constants for vectors of `width` numbers of a format."""
    if format.itemsize == 4:
        return {"ELEMENT": np.float32, "WORDS": width, "WIDTH": width}
    packed = {"ELEMENT": np.uint16, "WORDS": 1} if width == 1 else {"ELEMENT": np.uint32, "WORDS": width // 2}
    return {**packed, "WIDTH": width, "FORMAT": format.number}


def as_elements(X, format: Format, width: int = 1):
    """View an array as a vector of what the constants for `width` call elements."""
    if format.itemsize == 4:
        return flatten(X)
    return as_words(flatten(X)) if width > 1 else as_bits(flatten(X))
