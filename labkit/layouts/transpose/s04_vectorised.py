"""A thread reads and writes 16 bytes at once, and turns a small square round in its registers.

With 16 bytes of a row a thread has 4 elements of 4 bytes, or 8 of 2. It loads as many rows of them as there are
elements, a square, and its columns are whole vectors of the target. Elements of 4 bytes are in their registers already,
and to turn the square is to name them otherwise; of 2 bytes there are two in a word, and a word of a column is put
together of two words. Then vectors go through the tile, which holds the target's rows.

The tile has 64 x 64 elements, so that rows are 256 or 128 bytes long on both sides. The rows of a square stay multiples
of 16 bytes, so that the spare bank of the step before becomes a spare vector. Eight threads that store at once do so 4
or 8 rows apart, and no pitch in whole vectors brings these to different banks.

Costs for elements of B bytes, and whole tiles:

    B / 32                              sectors read per element
    B / 32                              sectors written per element
    TILE * (TILE * B + 16)              bytes of shared memory per block
    1                                   barriers per block
    TILE**2 * B / 512 * (64 / B - 4)    bank conflicts per block: a warp's store takes 16 or 32 passes instead of 4

Takes rows that are whole vectors, on both sides. Limited by memory where elements have 4 bytes. Of 2 bytes as many take
twice the passes, and these conflicts still cost some percent on an H100; `s05_swizzled` takes them away.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.layouts.elements import as_words, specialise_itemsize
from labkit.layouts.transpose import IN_VECTORS, LARGE
from labkit.ptx import load4, store4

EXAMPLES, BENCHED = IN_VECTORS, LARGE
TILE = 64  # elements along each side
ELEMENT = np.uint32
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
SIDE = 4 * PACK  # elements of a vector, and along each side of a thread's square
THREADS = TILE // SIDE  # along each side of a block
PITCH = TILE // PACK + 4  # words from a row of the tile to the next
HALF = np.uint32(16)
LOW, HIGH = np.uint32(0x0000FFFF), np.uint32(0xFFFF0000)


@cuda.jit(device=True)
def turned(square, col, word):
    """A word of a column of the square: one element, or those of two rows."""
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
            a, b, c, d = turned(square, i, 0), turned(square, i, 1), turned(square, i, 2), turned(square, i, 3)
            store4(tile, (SIDE * across + i, 4 * down), a, b, c, d)
    cuda.syncthreads()
    for i in range(SIDE):
        line = i * THREADS + down
        row, word = left + line, top // PACK + 4 * across
        if row < np.uint32(y.shape[1]) and word < np.uint32(y.shape[2]):
            a, b, c, d = load4(tile, (line, 4 * across))
            store4(y, (n, row, word), a, b, c, d)


def geometry(x, itemsize: int):
    """Grid and block: along x of the grid tiles along a row of the source, along y along a column, along z matrices."""
    batch, rows, cols = x.shape
    threads = TILE * itemsize // 16
    return (-(-cols // TILE), -(-rows // TILE), batch), (threads, threads)


def launches(x, y, problem):
    """y = x in another layout."""
    x, y = problem.as_matrices(x, y)
    kernel = specialise_itemsize(vectorised, x.dtype.itemsize)
    return [Launch(kernel, *geometry(x, x.dtype.itemsize), (as_words(x), as_words(y)))]
