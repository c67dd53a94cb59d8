"""Vectors on one side, single elements on the other, whose rows begin anywhere: 49 pixels, or 55 x 55.

Rows of 7 x 7 pixels are not whole vectors, but rows of channels are. The side with whole vectors moves vectors; on the
other a warp moves neighbours, one element per thread, at any alignment. Elements of 2 bytes are paired along the
vector: a word of the tile has a pixel of two channels, which is two accesses to global memory and one to shared
memory. `one_sided` reads unaligned rows of the source, and `spread` writes unaligned rows of the target.

Costs for elements of B bytes, whole tiles, and rows that begin a sector:

    B / 32                          sectors read per element
    B / 32                          sectors written per element
    128 / B * (LONG * B + 16)       bytes of shared memory per block
    1                               barriers per block
    3 * LONG                        bank conflicts per block: a warp stores a word of 32 rows, which are in 8 banks

Takes rows that are whole vectors on at least one side. Rows of the other side that begin inside a sector share it with
their neighbours: L2 reads it twice, or combines it.
"""

import numpy as np

from labkit import cuda
from labkit.ladder import Launch
from labkit.layouts.elements import as_words, specialise_itemsize
from labkit.layouts.transpose import ALIGNED_BENCHED, ALIGNED_EXAMPLES, TO_NCHW, TO_NHWC, UNALIGNED_BENCHED
from labkit.parts.vector_widths import can_load_vectors
from labkit.ptx import load4, store4

EXAMPLES, BENCHED = (  # tested and timed sizes: N, C, H, W, source, target
    (*ALIGNED_EXAMPLES, (2, 40, 7, 7, *TO_NHWC), (1, 72, 3, 3, *TO_NCHW)),
    (*UNALIGNED_BENCHED, *ALIGNED_BENCHED),
)
ELEMENT = np.uint32  # an element's bits; `specialise_itemsize` replaces it for elements of 2 bytes
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
LONG = 64  # elements of a tile along the side with vectors
WIDE = 32 * PACK  # elements along the other side
WORDS, VECTORS = LONG // PACK, LONG // (4 * PACK)  # of a row of the tile
PITCH = WORDS + 4  # words from a row of the tile to the next
LANES, WARPS = 32, 8
WORD_ROUNDS = WORDS // WARPS  # words per warp
VECTOR_ROUNDS = WIDE * VECTORS // (LANES * WARPS)  # vectors per thread
LOW, HALF = np.uint32(0xFFFF), np.uint32(16)


@cuda.jit(device=True)
def load_word(x, n, row, col):
    """Load a word of elements of neighbouring rows."""
    if PACK == 1:
        return x[n, row, col]
    return np.uint32(x[n, row, col]) | np.uint32(x[n, row + np.uint32(1), col]) << HALF


@cuda.jit(device=True)
def store_word(y, n, row, col, word):
    """Store a word to elements of neighbouring rows."""
    if PACK == 1:
        y[n, row, col] = word
    else:
        y[n, row, col], y[n, row + np.uint32(1), col] = ELEMENT(word & LOW), ELEMENT(word >> HALF)


@cuda.jit
def one_sided(x, y):
    tile = cuda.shared.array((WIDE, PITCH), np.uint32, alignment=16)
    words = cuda.local.array((WORD_ROUNDS, PACK), np.uint32)
    n, lane, warp = np.uint32(cuda.blockIdx.z), np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    left, top = np.uint32(cuda.blockIdx.x * WIDE), np.uint32(cuda.blockIdx.y * LONG)
    for i in range(WORD_ROUNDS):
        for j in range(PACK):
            row, col = top + np.uint32(PACK) * (np.uint32(i * WARPS) + warp), left + np.uint32(LANES * j) + lane
            inside = row < np.uint32(x.shape[1]) and col < np.uint32(x.shape[2])
            words[i, j] = load_word(x, n, row, col) if inside else np.uint32(0)
    for i in range(WORD_ROUNDS):
        for j in range(PACK):
            tile[np.uint32(LANES * j) + lane, np.uint32(i * WARPS) + warp] = words[i, j]
    cuda.syncthreads()
    for i in range(VECTOR_ROUNDS):
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
    for i in range(VECTOR_ROUNDS):
        number = np.uint32(i * LANES * WARPS) + np.uint32(LANES) * warp + lane
        line, vector = number // np.uint32(VECTORS), number % np.uint32(VECTORS)
        row, word = left + line, top // np.uint32(PACK) + 4 * vector
        if row < np.uint32(x.shape[1]) and word < np.uint32(x.shape[2]):
            a, b, c, d = load4(x, (n, row, word))
            store4(tile, (line, 4 * vector), a, b, c, d)
    cuda.syncthreads()
    for i in range(WORD_ROUNDS):
        for j in range(PACK):
            row, col = top + np.uint32(PACK) * (np.uint32(i * WARPS) + warp), left + np.uint32(LANES * j) + lane
            if row < np.uint32(y.shape[1]) and col < np.uint32(y.shape[2]):
                store_word(y, n, row, col, tile[np.uint32(LANES * j) + lane, np.uint32(i * WARPS) + warp])


def geometry(batch: int, rows: int, long: int, itemsize: int):
    """Return grid and block for `rows` rows of `long` elements: x of the grid counts rows, y tiles along them."""
    width = LANES * 4 // itemsize
    return (-(-rows // width), -(-long // LONG), batch), (LANES, WARPS)


def transpose(x, y) -> Launch:
    """Return the launch of y = the transpose of x; the side without whole vectors may have any strides."""
    (batch, rows, cols), itemsize = x.shape, x.dtype.itemsize
    if can_load_vectors(y):
        grid = geometry(batch, cols, rows, itemsize)
        return Launch(specialise_itemsize(one_sided, itemsize), *grid, (x, as_words(y)))
    return Launch(specialise_itemsize(spread, itemsize), *geometry(batch, rows, cols, itemsize), (as_words(x), y))


def launches(x, y, problem):
    """y = x in another layout."""
    return [transpose(*problem.as_matrices(x, y))]
