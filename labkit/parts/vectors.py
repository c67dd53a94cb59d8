"""Vectors of neighbouring elements of a row: loads, stores and asynchronous copies, converted to and from float32.

Constants of the step choose the access. `ELEMENT` and `WIDTH` are the element type and the length of a vector:

    ELEMENT     WIDTH   rows hold                           access
    float32     4       float32                             16 bytes
    uint32      8       16-bit numbers, two in a word       16 bytes
    uint16      4       bits of 16-bit numbers              8 bytes
    float32     1       float32                             4 bytes
    uint16      1       bits of 16-bit numbers              2 bytes

`FORMAT` is that of 16-bit numbers: `ptx.BF16` or `ptx.FP16`.

`values` is a local array of `WIDTH` float32, or a row of one for several loads at once. Rows, columns and element
indices count elements of the format, also where words hold two of them.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.parts.fours import pack_bits, unpack_bits

ELEMENT, WIDTH = np.float32, 4
IS_FLOAT32 = ELEMENT is np.float32
PACK = 2 if ELEMENT is np.uint32 else 1  # elements per word
WORDS = WIDTH if IS_FLOAT32 or WIDTH == 1 else WIDTH // 2  # registers per vector that is not converted
VECTOR_BYTES = WIDTH // PACK * np.dtype(ELEMENT).itemsize
FORMAT = ptx.BF16
HALF, LOW = np.uint32(16), np.uint32(0xFFFF)  # bits of a number, and the mask of the lower one in a word


@cuda.jit(device=True)
def memory_index(i):
    """Return the index at which memory holds element i."""
    if PACK == 1:
        return i
    return i // PACK


@cuda.jit(device=True)
def load(x, row, i, values):
    """Load the vector at column i of a row."""
    load_at(x, (row, memory_index(i)), values)


@cuda.jit(device=True)
def store(y, row, i, values):
    """Store the vector at column i of a row."""
    store_at(y, (row, memory_index(i)), values)


@cuda.jit(device=True)
def load_one(x, row, i):
    """Return the element at column i of a row as float32, where memory does not hold words."""
    if IS_FLOAT32:
        return x[row, i]
    return ptx.unpack2(np.uint32(x[row, i]), FORMAT)[0]


@cuda.jit(device=True)
def store_one(y, row, i, value):
    """Store a float32 to the element at column i of a row, where memory does not hold words."""
    if IS_FLOAT32:
        y[row, i] = value
    else:
        y[row, i] = np.uint16(ptx.pack2(value, value, FORMAT) & LOW)


@cuda.jit(device=True)
def copy_async(shared, element, x, row, i):
    """Begin the copy of the vector at column i to an element of shared memory; `ptx.cp_async_wait` waits for it."""
    if VECTOR_BYTES == 2:
        shared[element] = x[row, i]  # asynchronous copies have at least four bytes
    else:
        ptx.cp_async(shared, memory_index(element), x, (row, memory_index(i)), VECTOR_BYTES, VECTOR_BYTES)


@cuda.jit(device=True)
def load_shared(shared, element, values):
    """Load the vector at an element of a shared array with one axis."""
    load_at(shared, memory_index(element), values)


@cuda.jit(device=True)
def store_shared(shared, element, values):
    """Store the vector at an element of a shared array with one axis."""
    store_at(shared, memory_index(element), values)


@cuda.jit(device=True)
def load_at(array, index, values):
    """Load the vector at `array[index]`; in an array of words the index counts words."""
    if WIDTH == 1:
        if IS_FLOAT32:
            values[0] = array[index]
        else:
            values[0], _ = ptx.unpack2(np.uint32(array[index]), FORMAT)
    elif IS_FLOAT32:
        values[0], values[1], values[2], values[3] = ptx.load4(array, index)
    else:
        a, b, c, d = ptx.load4(array, index)
        if WIDTH == 8:
            unpack_words(a, b, c, d, values)
        else:
            values[0], values[1], values[2], values[3] = unpack_bits(a, b, c, d)


@cuda.jit(device=True)
def store_at(array, index, values):
    """Store the vector at `array[index]`; in an array of words the index counts words."""
    if WIDTH == 1:
        if IS_FLOAT32:
            array[index] = values[0]
        else:
            array[index] = np.uint16(ptx.pack2(values[0], values[0], FORMAT) & LOW)
    elif IS_FLOAT32:
        ptx.store4(array, index, values[0], values[1], values[2], values[3])
    elif WIDTH == 8:
        a, b = ptx.pack2(values[0], values[1], FORMAT), ptx.pack2(values[2], values[3], FORMAT)
        c, d = ptx.pack2(values[4], values[5], FORMAT), ptx.pack2(values[6], values[7], FORMAT)
        ptx.store4(array, index, a, b, c, d)
    else:
        a, b, c, d = pack_bits(values[0], values[1], values[2], values[3])
        ptx.store4(array, index, a, b, c, d)


@cuda.jit(device=True)
def load_float32(vector, i, values):
    """Load `WIDTH` elements of a float32 vector, for rows of any type."""
    if WIDTH == 1:
        values[0] = vector[i]
    else:
        values[0], values[1], values[2], values[3] = ptx.load4(vector, i)
    if WIDTH == 8:
        values[4], values[5], values[6], values[7] = ptx.load4(vector, i + np.uint32(4))


@cuda.jit(device=True)
def store_float32(matrix, row, i, values):
    """Store `WIDTH` elements to a row of a float32 matrix, for rows of any type."""
    if WIDTH == 1:
        matrix[row, i] = values[0]
    else:
        ptx.store4(matrix, (row, i), values[0], values[1], values[2], values[3])
    if WIDTH == 8:
        ptx.store4(matrix, (row, i + np.uint32(4)), values[4], values[5], values[6], values[7])


@cuda.jit(device=True)
def load_raw(x, row, i, raw):
    """Load the vector at column i of a row unconverted, into `WORDS` elements; two 16-bit numbers share a register."""
    if WIDTH == 1:
        raw[0] = x[row, i]
    elif WORDS == 2:
        a, b, c, d = ptx.load4(x, (row, i))
        raw[0], raw[1] = np.uint32(a) | np.uint32(b) << HALF, np.uint32(c) | np.uint32(d) << HALF
    else:
        raw[0], raw[1], raw[2], raw[3] = ptx.load4(x, (row, memory_index(i)))


@cuda.jit(device=True)
def unpack(raw, values):
    """Convert what `load_raw` loaded to float32."""
    if WIDTH == 1:
        if IS_FLOAT32:
            values[0] = raw[0]
        else:
            values[0], _ = ptx.unpack2(raw[0], FORMAT)
    elif IS_FLOAT32:
        values[0], values[1], values[2], values[3] = raw[0], raw[1], raw[2], raw[3]
    elif WIDTH == 8:
        unpack_words(raw[0], raw[1], raw[2], raw[3], values)
    else:
        values[0], values[1] = ptx.unpack2(raw[0], FORMAT)
        values[2], values[3] = ptx.unpack2(raw[1], FORMAT)


@cuda.jit(device=True)
def unpack_words(a, b, c, d, values):
    """Convert four words of two 16-bit numbers each."""
    values[0], values[1] = ptx.unpack2(a, FORMAT)
    values[2], values[3] = ptx.unpack2(b, FORMAT)
    values[4], values[5] = ptx.unpack2(c, FORMAT)
    values[6], values[7] = ptx.unpack2(d, FORMAT)
