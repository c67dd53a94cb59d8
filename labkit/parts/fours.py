"""Four neighbouring elements of an array, loaded and stored as four float32 values.

Constants choose the access; a launch sets them for its operands by `specialise_alignment` or
`specialise_type_and_alignment` of `labkit.parts.vector_widths`. `ALIGNED` is True where rows begin at multiples of four
elements: one access for all four. Where it is False, as for `x[1:]`, every second element or rows of 101 elements, each
element has its own access. `ELEMENT` is float32, or uint16 for the bits of bfloat16.
"""

import numpy as np

from labkit import cuda, ptx

ELEMENT, ALIGNED = np.float32, True
IS_FLOAT32 = ELEMENT is np.float32
FORMAT = ptx.BF16
HALF, LOW = np.uint32(16), np.uint32(0xFFFF)  # bits of a number, and the mask of the lower one in a word


@cuda.jit(device=True)
def load_four(x, i):
    """Return four elements of a float32 vector from i on; past its end, its last element is repeated."""
    if ALIGNED:
        return ptx.load4(x, i)
    last = x.shape[0] - 1
    return x[i], x[min(i + 1, last)], x[min(i + 2, last)], x[min(i + 3, last)]


@cuda.jit(device=True)
def store_four(y, i, a, b, c, d):
    """Write four elements of a float32 vector from i on."""
    if ALIGNED:
        ptx.store4(y, i, a, b, c, d)
    else:
        y[i], y[i + 1], y[i + 2], y[i + 3] = a, b, c, d


@cuda.jit(device=True)
def load_row_four(x, row, i):
    """Return four elements of a row from column i on; past its end, its last element is repeated."""
    if ALIGNED:
        a, b, c, d = ptx.load4(x, (row, i))
    else:
        last = x.shape[1] - 1
        second, third, fourth = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        a, b, c, d = x[row, i], x[row, second], x[row, third], x[row, fourth]
    if IS_FLOAT32:
        return a, b, c, d
    return unpack_bits(a, b, c, d)


@cuda.jit(device=True)
def store_row_four(y, row, i, a, b, c, d):
    """Write four elements of a row from column i on, up to its end."""
    if IS_FLOAT32:
        p, q, r, s = a, b, c, d
    else:
        p, q, r, s = pack_bits(a, b, c, d)
    if ALIGNED:
        ptx.store4(y, (row, i), p, q, r, s)
    else:
        y[row, i] = p
        if i + 1 < y.shape[1]:
            y[row, i + 1] = q
        if i + 2 < y.shape[1]:
            y[row, i + 2] = r
        if i + 3 < y.shape[1]:
            y[row, i + 3] = s


@cuda.jit(device=True)
def load_four_or_zeros(X, row, col):
    """Return four elements of a float32 row from a column on; past its end, zeros."""
    a = b = c = d = np.float32(0)
    if ALIGNED:
        if col < X.shape[1]:
            return ptx.load4(X, (row, col))
        return a, b, c, d
    if col < X.shape[1]:
        a = X[row, col]
    if col + 1 < X.shape[1]:
        b = X[row, col + 1]
    if col + 2 < X.shape[1]:
        c = X[row, col + 2]
    if col + 3 < X.shape[1]:
        d = X[row, col + 3]
    return a, b, c, d


@cuda.jit(device=True)
def store_four_within(X, row, col, a, b, c, d):
    """Write four elements of a float32 row from a column on, up to its end; nothing where the column is past it."""
    if ALIGNED:
        if col < X.shape[1]:
            ptx.store4(X, (row, col), a, b, c, d)
    else:
        if col < X.shape[1]:
            X[row, col] = a
        if col + 1 < X.shape[1]:
            X[row, col + 1] = b
        if col + 2 < X.shape[1]:
            X[row, col + 2] = c
        if col + 3 < X.shape[1]:
            X[row, col + 3] = d


@cuda.jit(device=True)
def unpack_bits(a, b, c, d):
    """Convert four 16-bit numbers, given as bits, to float32."""
    first, second = ptx.unpack2(np.uint32(a) | np.uint32(b) << HALF, FORMAT)
    third, fourth = ptx.unpack2(np.uint32(c) | np.uint32(d) << HALF, FORMAT)
    return first, second, third, fourth


@cuda.jit(device=True)
def pack_bits(a, b, c, d):
    """Round four float32 to 16 bits and return these."""
    low, high = ptx.pack2(a, b, FORMAT), ptx.pack2(c, d, FORMAT)
    return np.uint16(low & LOW), np.uint16(low >> HALF), np.uint16(high & LOW), np.uint16(high >> HALF)
