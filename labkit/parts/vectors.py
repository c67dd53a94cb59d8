"""Vectors of neighbours in a row: loads, stores and asynchronous copies; a thread computes with them as float32.

Constants of the step choose the access. `ELEMENT` and `WIDTH` are the type and the length of a vector:

    ELEMENT     WIDTH   rows hold                           access
    float32     4       float32                             16 bytes
    uint32      8       bfloat16, two in a word             16 bytes
    uint16      4       bits of bfloat16                    8 bytes
    float32     1       float32                             4 bytes
    uint16      1       bits of bfloat16                    2 bytes

`own` is an array of the thread with `WIDTH` float32: a local array, or a row of one, `own[k]`, for several loads at
once. Rows, columns and places count elements, whatever holds them.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.parts.fours import pack_bits, unpack_bits

ELEMENT, WIDTH = np.float32, 4
IS_FLOAT32 = ELEMENT is np.float32
PACK = 2 if ELEMENT is np.uint32 else 1  # elements of a word
VECTOR_BYTES = WIDTH // PACK * np.dtype(ELEMENT).itemsize
FORMAT = ptx.BF16
LOW = np.uint32(0xFFFF)


@cuda.jit(device=True)
def index_of(i):
    """Return the index at which memory holds element i."""
    if PACK == 1:
        return i
    return i // PACK


@cuda.jit(device=True)
def load(x, row, i, own):
    """Load the vector at column i of a row."""
    load_at(x, (row, index_of(i)), own)


@cuda.jit(device=True)
def store(y, row, i, own):
    """Store the vector at column i of a row."""
    store_at(y, (row, index_of(i)), own)


@cuda.jit(device=True)
def copy_async(kept, place, x, row, i):
    """Begin the copy of the vector at column i to element `place` of shared memory; `ptx.cp_async_wait` waits."""
    if VECTOR_BYTES == 2:
        kept[place] = x[row, i]  # no asynchronous copy has two bytes
    else:
        ptx.cp_async(kept, index_of(place), x, (row, index_of(i)), VECTOR_BYTES, VECTOR_BYTES)


@cuda.jit(device=True)
def load_shared(kept, place, own):
    """Load the vector at element `place` of a shared array with one axis."""
    load_at(kept, index_of(place), own)


@cuda.jit(device=True)
def store_shared(kept, place, own):
    """Store the vector at element `place` of a shared array with one axis."""
    store_at(kept, index_of(place), own)


@cuda.jit(device=True)
def load_at(array, index, own):
    """Load the vector at `array[index]`: where the array holds words, the index counts them."""
    if WIDTH == 1:
        if IS_FLOAT32:
            own[0] = array[index]
        else:
            own[0], _ = ptx.unpack2(np.uint32(array[index]), FORMAT)
    elif IS_FLOAT32:
        own[0], own[1], own[2], own[3] = ptx.load4(array, index)
    else:
        a, b, c, d = ptx.load4(array, index)
        if WIDTH == 8:
            unpack_words(a, b, c, d, own)
        else:
            own[0], own[1], own[2], own[3] = unpack_bits(a, b, c, d)


@cuda.jit(device=True)
def store_at(array, index, own):
    """Store the vector at `array[index]`: where the array holds words, the index counts them."""
    if WIDTH == 1:
        if IS_FLOAT32:
            array[index] = own[0]
        else:
            array[index] = np.uint16(ptx.pack2(own[0], own[0], FORMAT) & LOW)
    elif IS_FLOAT32:
        ptx.store4(array, index, own[0], own[1], own[2], own[3])
    elif WIDTH == 8:
        a, b = ptx.pack2(own[0], own[1], FORMAT), ptx.pack2(own[2], own[3], FORMAT)
        c, d = ptx.pack2(own[4], own[5], FORMAT), ptx.pack2(own[6], own[7], FORMAT)
        ptx.store4(array, index, a, b, c, d)
    else:
        a, b, c, d = pack_bits(own[0], own[1], own[2], own[3])
        ptx.store4(array, index, a, b, c, d)


@cuda.jit(device=True)
def load_float32(vector, i, own):
    """Load `WIDTH` elements of a float32 vector, whatever rows hold."""
    if WIDTH == 1:
        own[0] = vector[i]
    else:
        own[0], own[1], own[2], own[3] = ptx.load4(vector, i)
    if WIDTH == 8:
        own[4], own[5], own[6], own[7] = ptx.load4(vector, i + np.uint32(4))


@cuda.jit(device=True)
def store_float32(matrix, row, i, own):
    """Store `WIDTH` elements to a row of a float32 matrix, whatever rows hold."""
    if WIDTH == 1:
        matrix[row, i] = own[0]
    else:
        ptx.store4(matrix, (row, i), own[0], own[1], own[2], own[3])
    if WIDTH == 8:
        ptx.store4(matrix, (row, i + np.uint32(4)), own[4], own[5], own[6], own[7])


@cuda.jit(device=True)
def load_raw(x, row, i, raw):
    """Load the vector at column i of a row as memory holds it, into four elements, or one where `WIDTH` is 1.

    Eight bfloat16 then take four registers instead of eight.
    """
    if WIDTH == 1:
        raw[0] = x[row, i]
    else:
        raw[0], raw[1], raw[2], raw[3] = ptx.load4(x, (row, index_of(i)))


@cuda.jit(device=True)
def unpack(raw, own):
    """Convert what `load_raw` loaded to float32."""
    if WIDTH == 1:
        if IS_FLOAT32:
            own[0] = raw[0]
        else:
            own[0], _ = ptx.unpack2(raw[0], FORMAT)
    elif IS_FLOAT32:
        own[0], own[1], own[2], own[3] = raw[0], raw[1], raw[2], raw[3]
    elif WIDTH == 8:
        unpack_words(raw[0], raw[1], raw[2], raw[3], own)
    else:
        own[0], own[1], own[2], own[3] = unpack_bits(raw[0], raw[1], raw[2], raw[3])


@cuda.jit(device=True)
def unpack_words(a, b, c, d, own):
    """Convert four words of two bfloat16 each."""
    own[0], own[1] = ptx.unpack2(a, FORMAT)
    own[2], own[3] = ptx.unpack2(b, FORMAT)
    own[4], own[5] = ptx.unpack2(c, FORMAT)
    own[6], own[7] = ptx.unpack2(d, FORMAT)
