"""Transposes of matrices of any strides: the last step of the ladder, where a side that allows no vectors does without.

A thread turns a square round in registers and stores it into the swizzled tile, as in `transpose/s05_swizzled`. How it
comes by the rows of its square, and how it leaves those of the tile, are two functions that each side has of its own:
16 bytes at once, or element by element, with a look at the edge before each.

Costs, for each element: it is read once and written once. A warp that goes element by element touches the same sectors
as one that does not, in four times as many instructions for elements of 4 bytes, and eight times for those of 2.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.addresses import has_rows_at_pieces, lies_in_order
from labkit.ladder import Launch
from labkit.layouts.elements import BITS, as_words, for_elements
from labkit.ptx import load4, store4

TILE = 64  # elements along each side
ELEMENT = np.uint32
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
SIDE = 4 * PACK  # elements of a vector, and along each side of a thread's square
THREADS = TILE // SIDE  # along each side of a block
PITCH = TILE // PACK  # words from a row of the tile to the next
HALF = np.uint32(16)
LOW, HIGH = np.uint32(0x0000FFFF), np.uint32(0xFFFF0000)


@cuda.jit(device=True)
def read_vector(x, n, row, col):
    return load4(x, (n, row, col // np.uint32(PACK)))


@cuda.jit(device=True)
def write_vector(y, n, row, col, a, b, c, d):
    store4(y, (n, row, col // np.uint32(PACK)), a, b, c, d)


@cuda.jit(device=True)
def element(x, n, row, col):
    return np.uint32(x[n, row, col]) if col < x.shape[2] else np.uint32(0)


@cuda.jit(device=True)
def word(x, n, row, col):
    if PACK == 1:
        return element(x, n, row, col)
    return element(x, n, row, col) | element(x, n, row, col + np.uint32(1)) << HALF


@cuda.jit(device=True)
def read_elements(x, n, row, col):
    step = np.uint32(PACK)
    first, second = word(x, n, row, col), word(x, n, row, col + step)
    return first, second, word(x, n, row, col + step + step), word(x, n, row, col + step + step + step)


@cuda.jit(device=True)
def write_word(y, n, row, col, value):
    if PACK == 1:
        if col < y.shape[2]:
            y[n, row, col] = value
    else:
        if col < y.shape[2]:
            y[n, row, col] = ELEMENT(value & LOW)
        if col + np.uint32(1) < y.shape[2]:
            y[n, row, col + np.uint32(1)] = ELEMENT(value >> HALF)


@cuda.jit(device=True)
def write_elements(y, n, row, col, a, b, c, d):
    step = np.uint32(PACK)
    write_word(y, n, row, col, a)
    write_word(y, n, row, col + step, b)
    write_word(y, n, row, col + step + step, c)
    write_word(y, n, row, col + step + step + step, d)


@cuda.jit(device=True)
def turned(square, col, word):
    """A word of a column of the square: one element, or those of two rows."""
    if PACK == 1:
        return square[word, col]
    first, second = square[2 * word, col // 2], square[2 * word + 1, col // 2]
    if col % 2 == 0:
        return (first & LOW) | (second << HALF)
    return (first >> HALF) | (second & HIGH)


READ, WRITE = read_vector, write_vector


@cuda.jit
def squares(x, y, rows, cols):
    tile = cuda.shared.array((TILE, PITCH), np.uint32, alignment=16)
    square = cuda.local.array((SIDE, 4), np.uint32)
    across, down = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    wide, high = (cols + np.uint32(TILE - 1)) // np.uint32(TILE), (rows + np.uint32(TILE - 1)) // np.uint32(TILE)
    block = np.uint32(cuda.blockIdx.x)
    n, left, top = block // (wide * high), block % wide * np.uint32(TILE), block // wide % high * np.uint32(TILE)
    row, col = top + SIDE * down, left + SIDE * across
    if row < rows and col < cols:
        for i in range(SIDE):
            square[i, 0], square[i, 1], square[i, 2], square[i, 3] = 0, 0, 0, 0
            if row + i < rows:
                square[i, 0], square[i, 1], square[i, 2], square[i, 3] = READ(x, n, row + np.uint32(i), col)
        for i in range(SIDE):
            a, b, c, d = turned(square, i, 0), turned(square, i, 1), turned(square, i, 2), turned(square, i, 3)
            store4(tile, (SIDE * across + i, 4 * (down ^ across)), a, b, c, d)
    cuda.syncthreads()
    for i in range(SIDE):
        line = np.uint32(i * THREADS) + down
        row, col = left + line, top + SIDE * across
        if row < cols and col < rows:
            a, b, c, d = load4(tile, (line, 4 * (across ^ line // SIDE)))
            WRITE(y, n, row, col, a, b, c, d)


@cache
def kernel_for(itemsize: int, x_in_vectors: bool, y_in_vectors: bool):
    """The kernel for elements of so many bytes, and sides that are reached in vectors or not."""
    read = read_vector if x_in_vectors else read_elements
    write = write_vector if y_in_vectors else write_elements
    own = {name: for_elements(function, itemsize) for name, function in (("READ", read), ("WRITE", write))}
    return specialise(squares, ELEMENT=BITS[itemsize], **own)


def transpose(x, y) -> Launch:
    """y = the transpose of x, matrix by matrix, for batches of matrices of 2-byte or 4-byte elements."""
    (batch, rows, cols), itemsize = x.shape, x.dtype.itemsize
    in_vectors = [lies_in_order(X) and has_rows_at_pieces(X) for X in (x, y)]
    arrays = [as_words(X) if fits else X for X, fits in zip((x, y), in_vectors)]
    threads = TILE * itemsize // 16
    tiles = batch * -(-rows // TILE) * -(-cols // TILE)
    kernel = kernel_for(itemsize, *in_vectors)
    return Launch(kernel, tiles, (threads, threads), (*arrays, np.uint32(rows), np.uint32(cols)))
