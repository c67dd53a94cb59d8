"""Vectors on one side, single elements on the other, whose rows begin anywhere: 49 pixels, or 55 x 55.

Rows of 7 x 7 pixels are no whole vectors, but those of the channels are. The side with whole vectors moves by them; on
the other a warp takes neighbours, an element a thread, wherever they begin. Elements of 2 bytes are paired along the
vector: a word of the tile has a pixel of two channels, which are two accesses to global memory and one to shared
memory. Where the source has the odd rows the kernel is `one_sided`, and `spread` where the target has them.

Costs for elements of B bytes, whole tiles, and rows that begin a sector:

    B / 32                          sectors read per element
    B / 32                          sectors written per element
    128 / B * (LONG * B + 16)       bytes of shared memory per block
    1                               barriers per block
    3 * LONG                        bank conflicts per block: a warp takes a word of 32 rows, which lie in 8 banks

Takes rows that are whole vectors on one side at least. Rows of the other side that begin in the midst of a sector share
it with their neighbours: L2 reads it twice, or puts it together.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.layouts.elements import as_words, for_elements
from labkit.layouts.transpose import BACK, IN_VECTORS, LARGE, ODD, TO
from labkit.parts.vector_widths import can_load_vectors
from labkit.ptx import load4, store4

EXAMPLES, BENCHED = (*IN_VECTORS, (2, 40, 7, 7, *TO), (1, 72, 3, 3, *BACK)), (*ODD, *LARGE)
ELEMENT = np.uint32
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
LONG = 64  # elements of a tile along the side that has vectors
WIDE = 32 * PACK  # and along the other
WORDS, VECTORS = LONG // PACK, LONG // (4 * PACK)  # of a row of the tile
PITCH = WORDS + 4  # words from a row of the tile to the next
LANES, WARPS = 32, 8
ROUNDS = WORDS // WARPS  # in which the warps take words
MOVES = WIDE * VECTORS // (LANES * WARPS)  # in which the threads take vectors
LOW, HALF = np.uint32(0xFFFF), np.uint32(16)


@cuda.jit(device=True)
def picked(x, n, row, col):
    """A word of elements of neighbouring rows."""
    if PACK == 1:
        return x[n, row, col]
    return np.uint32(x[n, row, col]) | np.uint32(x[n, row + np.uint32(1), col]) << HALF


@cuda.jit(device=True)
def put(y, n, row, col, word):
    """As `picked`, the other way round."""
    if PACK == 1:
        y[n, row, col] = word
    else:
        y[n, row, col], y[n, row + np.uint32(1), col] = ELEMENT(word & LOW), ELEMENT(word >> HALF)


@cuda.jit
def one_sided(x, y):
    tile = cuda.shared.array((WIDE, PITCH), np.uint32, alignment=16)
    held = cuda.local.array((ROUNDS, PACK), np.uint32)
    n, lane, warp = np.uint32(cuda.blockIdx.z), np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    left, top = np.uint32(cuda.blockIdx.x * WIDE), np.uint32(cuda.blockIdx.y * LONG)
    for i in range(ROUNDS):
        for j in range(PACK):
            row, col = top + np.uint32(PACK) * (np.uint32(i * WARPS) + warp), left + np.uint32(LANES * j) + lane
            inside = row < np.uint32(x.shape[1]) and col < np.uint32(x.shape[2])
            held[i, j] = picked(x, n, row, col) if inside else np.uint32(0)
    for i in range(ROUNDS):
        for j in range(PACK):
            tile[np.uint32(LANES * j) + lane, np.uint32(i * WARPS) + warp] = held[i, j]
    cuda.syncthreads()
    for i in range(MOVES):
        number = np.uint32(i * LANES * WARPS) + np.uint32(LANES) * warp + lane
        line, vector = number // np.uint32(VECTORS), number % np.uint32(VECTORS)
        row, word = left + line, top // np.uint32(PACK) + 4 * vector
        if row < np.uint32(y.shape[1]) and word < np.uint32(y.shape[2]):
            a, b, c, d = load4(tile, (line, 4 * vector))
            store4(y, (n, row, word), a, b, c, d)


@cuda.jit
def spread(x, y):
    tile = cuda.shared.array((WIDE, PITCH), np.uint32, alignment=16)
    n, lane, warp = np.uint32(cuda.blockIdx.z), np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    left, top = np.uint32(cuda.blockIdx.x * WIDE), np.uint32(cuda.blockIdx.y * LONG)
    for i in range(MOVES):
        number = np.uint32(i * LANES * WARPS) + np.uint32(LANES) * warp + lane
        line, vector = number // np.uint32(VECTORS), number % np.uint32(VECTORS)
        row, word = left + line, top // np.uint32(PACK) + 4 * vector
        if row < np.uint32(x.shape[1]) and word < np.uint32(x.shape[2]):
            a, b, c, d = load4(x, (n, row, word))
            store4(tile, (line, 4 * vector), a, b, c, d)
    cuda.syncthreads()
    for i in range(ROUNDS):
        for j in range(PACK):
            row, col = top + np.uint32(PACK) * (np.uint32(i * WARPS) + warp), left + np.uint32(LANES * j) + lane
            if row < np.uint32(y.shape[1]) and col < np.uint32(y.shape[2]):
                put(y, n, row, col, tile[np.uint32(LANES * j) + lane, np.uint32(i * WARPS) + warp])


def geometry(batch: int, rows: int, long: int, itemsize: int):
    """Grid and block, for so many rows that are long: these along x of the grid, and along y their tiles."""
    wide = LANES * 4 // itemsize
    return (-(-rows // wide), -(-long // LONG), batch), (LANES, WARPS)


def transpose(x, y) -> Launch:
    """y = the transpose of x, matrix by matrix; the side that has no whole vectors may have any strides."""
    (batch, rows, cols), itemsize = x.shape, x.dtype.itemsize
    if can_load_vectors(y):
        grid = geometry(batch, cols, rows, itemsize)
        return Launch(for_elements(one_sided, itemsize), *grid, (x, as_words(y)))
    return Launch(for_elements(spread, itemsize), *geometry(batch, rows, cols, itemsize), (as_words(x), y))


def launches(x, y, problem):
    """y = x in another layout."""
    return [transpose(*problem.as_matrices(x, y))]
