"""A thread reads and writes 16 bytes at once, and transposes a small square in registers.

16 bytes of a row are 4 elements of 4 bytes, or 8 of 2. A thread loads equally many rows, a square, whose columns are
whole vectors of the target. Elements of 4 bytes have a register each, so the transpose only renames registers. Elements
of 2 bytes share words: a word of a column combines two words. Then vectors pass through the tile, which holds the
target's rows.

The tile has 64 x 64 elements: rows are 256 or 128 bytes long on both sides. Rows stay multiples of 16 bytes, so the
spare bank of the step before becomes a spare vector. Eight threads store at once, 4 or 8 rows apart, and no pitch in
whole vectors puts these rows in different banks.

Costs for elements of B bytes, and whole tiles:

    B / 32                              sectors read per element
    B / 32                              sectors written per element
    TILE * (TILE * B + 16)              bytes of shared memory per block
    1                                   barriers per block
    TILE**2 * B / 512 * (64 / B - 4)    bank conflicts per block: a warp's store takes 16 or 32 wavefronts, not 4

Takes rows that are whole vectors, on both sides. With elements of 4 bytes, limited by memory. Elements of 2 bytes take
twice the wavefronts, and these conflicts still cost some percent on an H100; `s05_swizzled` removes them.
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
PITCH = TILE // PACK + 4  # words from a row of the tile to the next
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
def vectorised(x, y):
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
            store4(tile, (SIDE * across + i, 4 * down), a, b, c, d)
    cuda.syncthreads()
    for i in range(SIDE):
        line = i * THREADS + down
        row, word = left + line, top // PACK + 4 * across
        if row < np.uint32(y.shape[1]) and word < np.uint32(y.shape[2]):
            a, b, c, d = load4(tile, (line, 4 * across))
            store4(y, (n, row, word), a, b, c, d)


def geometry(x, itemsize: int):
    """Return grid and block: x of the grid counts tiles along a row of the source, y along a column, z matrices."""
    batch, rows, cols = x.shape
    threads = TILE * itemsize // 16
    return (-(-cols // TILE), -(-rows // TILE), batch), (threads, threads)


def launches(x, y, problem):
    """y = x in another layout."""
    x, y = problem.as_matrices(x, y)  # batches of matrices of bits; those of y are transposes
    kernel = specialise_itemsize(vectorised, x.dtype.itemsize)
    return [Launch(kernel, *geometry(x, x.dtype.itemsize), (as_words(x), as_words(y)))]
