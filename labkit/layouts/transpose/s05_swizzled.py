"""Vectors of the tile are swizzled by an exclusive or: those that are stored at once are in different banks.

Shared memory moves the vectors of eight threads per wavefront, if they are in eight groups of four banks. Threads that
store at once have the same vector of different rows; threads that load at once have different vectors of a row. Vector
v of row r is at index v ^ (r / SIDE) of its row, where a thread's square has SIDE rows. The indices of a row are a
permutation, and so are those of a column. No vector is left empty.

Costs for elements of B bytes, and whole tiles:

    B / 32                          sectors read per element
    B / 32                          sectors written per element
    TILE**2 * B                     bytes of shared memory per block
    1                               barriers per block
    0                               bank conflicts per block

Takes rows that are whole vectors, on both sides. Limited by memory.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.layouts.elements import as_words, specialise_itemsize
from labkit.layouts.transpose import ALIGNED_BENCHED, ALIGNED_EXAMPLES
from labkit.ptx import load4, store4

EXAMPLES, BENCHED = ALIGNED_EXAMPLES, ALIGNED_BENCHED  # tested and timed sizes, all with rows of whole vectors
TILE = 64  # elements along each side
ELEMENT = np.uint32  # an element's bits; `specialise_itemsize` replaces it for elements of 2 bytes
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
SIDE = 4 * PACK  # elements of a vector, and of a side of a thread's square
THREADS = TILE // SIDE  # along each side of a block
PITCH = TILE // PACK  # words from a row of the tile to the next
HALF = np.uint32(16)
LOW, HIGH = np.uint32(0x0000FFFF), np.uint32(0xFFFF0000)


@cuda.jit(device=True)
def column(square, col, word):
    """Return a word of a column of the square: one element, or those of two rows."""
    if PACK == 1:
        return square[word, col]
    first, second = square[2 * word, col // 2], square[2 * word + 1, col // 2]
    if col % 2 == 0:
        return (first & LOW) | (second << HALF)
    return (first >> HALF) | (second & HIGH)


@cuda.jit
def swizzled(x, y):
    tile = cuda.shared.array((TILE, PITCH), np.uint32, alignment=16)
    square = cuda.local.array((SIDE, 4), np.uint32)
    n, across, down = np.uint32(cuda.blockIdx.z), np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    left, top = np.uint32(cuda.blockIdx.x * TILE), np.uint32(cuda.blockIdx.y * TILE)
    row, word = top + SIDE * down, left // PACK + 4 * across
    if row < np.uint32(x.shape[1]) and word < np.uint32(x.shape[2]):
        for i in range(SIDE):
            square[i, 0], square[i, 1], square[i, 2], square[i, 3] = load4(x, (n, row + i, word))
        for i in range(SIDE):
            a, b, c, d = (column(square, i, 0), column(square, i, 1), column(square, i, 2), column(square, i, 3))
            store4(tile, (SIDE * across + i, 4 * (down ^ across)), a, b, c, d)
    cuda.syncthreads()
    for i in range(SIDE):
        line = i * THREADS + down
        row, word = left + line, top // PACK + 4 * across
        if row < np.uint32(y.shape[1]) and word < np.uint32(y.shape[2]):
            a, b, c, d = load4(tile, (line, 4 * (across ^ line // SIDE)))
            store4(y, (n, row, word), a, b, c, d)


def geometry(x, itemsize: int):
    """Return grid and block: x of the grid counts tiles along a row of the source, y along a column, z matrices."""
    batch, rows, cols = x.shape
    threads = TILE * itemsize // 16
    return (-(-cols // TILE), -(-rows // TILE), batch), (threads, threads)


def transpose(x, y) -> Launch:
    """Return the launch of y = the transpose of x, matrix by matrix."""
    itemsize = x.dtype.itemsize
    return Launch(specialise_itemsize(swizzled, itemsize), *geometry(x, itemsize), (as_words(x), as_words(y)))


def launches(x, y, problem):
    """y = x in another layout."""
    return [transpose(*problem.as_matrices(x, y))]
