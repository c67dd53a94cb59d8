"""Rows that are too short for tiles form long runs together: 3 channels, or the 4 of a vector.

3 channels fill a twentieth of a tile. But 64 such rows without gaps are one run of memory, and 64 neighbours in each of
the long rows on the other side. A block loads such a run into shared memory unchanged. It assembles vectors of the long
rows from elements a short row apart (`pieces`). If the target has the short rows, it works the other way round
(`scatter`).

Neighbouring threads access elements 16 / B short rows apart. With rows of even length that may be 4, 8 or 16 times 32
banks; then the run has an empty vector after each 32, and a warp takes at most six wavefronts.

Costs for elements of B bytes, and SHORT rows that make whole sectors:

    B / 32                          sectors read per element
    B / 32                          sectors written per element
    1                               barriers per block

Takes long rows that are whole vectors, and short rows of which a block's shared memory holds a vector or eight.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshape
from labkit.ladder import Launch, TooLarge
from labkit.layouts.elements import UINT_BY_BYTES, as_words
from labkit.layouts.transpose import NARROW_BENCHED, TO_NCHW, TO_NHWC
from labkit.ptx import load4, store4

EXAMPLES = (  # tested sizes: N, C, H, W, source, target
    (2, 40, 7, 7, *TO_NHWC),
    (1, 3, 40, 25, *TO_NHWC),
    (2, 3, 8, 11, *TO_NCHW),
    (2, 8, 3, 24, "NCHW", "NCHW_VECT_C"),
    (1, 31, 20, 34, *TO_NHWC),
    (1, 31, 20, 34, *TO_NCHW),
)
BENCHED = (*NARROW_BENCHED, (64, 256, 56, 56, "NCHW", "NCHW_VECT_C"), (64, 256, 56, 56, "NCHW_VECT_C", "NCHW"))
THREADS = 128
ELEMENT = np.uint32
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
SIDE = 4 * PACK  # elements of a vector
GAP_INTERVAL = 1 << 28  # vectors of the run between empty ones: no run is so long
EVEN_GAP_INTERVAL = 32  # for short rows of even length
FRACTION = 22  # bits of a fixed-point reciprocal, which replaces a division
LOW, HALF = np.uint32(0xFFFF), np.uint32(16)
MIN_VECTORS = 8  # of a long row per block
RUN_BYTES = 16 * 1024  # preferred size of a run
MAX_SHORT = 1 << 10  # keeps products with a reciprocal below 2^32
MAX_BYTES = 227 * 1024  # of shared memory per block on compute capability 9.0


@cuda.jit(device=True)
def vector_slot(vector):
    """Return where a vector of the run is stored, in vectors."""
    return np.uint32(vector + vector // np.uint32(GAP_INTERVAL))


@cuda.jit(device=True)
def slot(element):
    """Return where an element of the run is stored, in elements."""
    return np.uint32(element + element // np.uint32(SIDE * GAP_INTERVAL) * np.uint32(SIDE))


@cuda.jit(device=True)
def load_word(run, index, stride):
    """Load a word of elements `stride` apart."""
    if PACK == 1:
        return run[slot(index)]
    return np.uint32(run[slot(index)]) | np.uint32(run[slot(np.uint32(index + stride))]) << HALF


@cuda.jit(device=True)
def store_word(run, index, stride, word):
    """Store a word to elements `stride` apart."""
    if PACK == 1:
        run[slot(index)] = word
    else:
        run[slot(index)], run[slot(np.uint32(index + stride))] = (ELEMENT(word & LOW), ELEMENT(word >> HALF))


@cuda.jit
def pieces(x, y, short, vectors):
    run = cuda.shared.array(0, ELEMENT)
    words = cuda.shared.array(0, np.uint32, alignment=16)  # the same memory
    n, t = np.uint32(cuda.blockIdx.y), np.uint32(cuda.threadIdx.x)
    first = np.uint32(cuda.blockIdx.x * vectors)
    count = np.uint32(min(vectors, np.uint32(np.uint32(y.shape[2]) // np.uint32(4) - first)))
    reciprocal = np.uint32(np.uint32((1 << FRACTION) + count - 1) // count)
    for v in range(t, np.uint32(count * short), np.uint32(THREADS)):
        a, b, c, d = load4(x, (n, np.uint32(4 * (first * short + v))))
        store4(words, np.uint32(4 * vector_slot(v)), a, b, c, d)
    cuda.syncthreads()
    step = np.uint32(PACK * short)
    for v in range(t, np.uint32(count * short), np.uint32(THREADS)):
        row = np.uint32(np.uint32(v * reciprocal) >> np.uint32(FRACTION))  # v // here, as both are small
        vector = np.uint32(v - row * count)
        index = np.uint32(SIDE * vector * short + row)
        a, b = load_word(run, index, short), load_word(run, np.uint32(index + step), short)
        c, d = load_word(run, np.uint32(index + 2 * step), short), load_word(run, np.uint32(index + 3 * step), short)
        store4(y, (n, row, np.uint32(4 * (first + vector))), a, b, c, d)


@cuda.jit
def scatter(x, y, short, vectors):
    run = cuda.shared.array(0, ELEMENT)
    words = cuda.shared.array(0, np.uint32, alignment=16)  # the same memory
    n, t = np.uint32(cuda.blockIdx.y), np.uint32(cuda.threadIdx.x)
    first = np.uint32(cuda.blockIdx.x * vectors)
    count = np.uint32(min(vectors, np.uint32(np.uint32(x.shape[2]) // np.uint32(4) - first)))
    reciprocal = np.uint32(np.uint32((1 << FRACTION) + count - 1) // count)
    step = np.uint32(PACK * short)
    for v in range(t, np.uint32(count * short), np.uint32(THREADS)):
        row = np.uint32(np.uint32(v * reciprocal) >> np.uint32(FRACTION))  # v // here, as both are small
        vector = np.uint32(v - row * count)
        a = b = c = d = np.uint32(0)  # for rows that the source lacks
        if row < np.uint32(x.shape[1]):
            a, b, c, d = load4(x, (n, row, np.uint32(4 * (first + vector))))
        index = np.uint32(SIDE * vector * short + row)
        store_word(run, index, short, a)
        store_word(run, np.uint32(index + step), short, b)
        store_word(run, np.uint32(index + 2 * step), short, c)
        store_word(run, np.uint32(index + 3 * step), short, d)
    cuda.syncthreads()
    for v in range(t, np.uint32(count * short), np.uint32(THREADS)):
        a, b, c, d = load4(words, np.uint32(4 * vector_slot(v)))
        store4(y, (n, np.uint32(4 * (first * short + v))), a, b, c, d)


def geometry(batch: int, short: int, long_bytes: int):
    """Return grid, block, the vectors of a long row per block, and its bytes of shared memory."""
    fitting = RUN_BYTES // (16 * short) // MIN_VECTORS * MIN_VECTORS
    vectors = min(max(fitting, MIN_VECTORS), -(-long_bytes // 16))
    run = vectors * short
    empty = run // EVEN_GAP_INTERVAL if short % 2 == 0 else 0
    return (-(-long_bytes // (16 * vectors)), batch), THREADS, vectors, 16 * (run + empty)


@cache
def specialise_kernel(kernel, itemsize: int, even: bool):
    """Return the kernel for elements of `itemsize` bytes, and short rows of even or odd length."""
    return specialise(kernel, ELEMENT=UINT_BY_BYTES[itemsize], GAP_INTERVAL=EVEN_GAP_INTERVAL if even else GAP_INTERVAL)


def transpose(x, y) -> Launch:
    """Return the launch of y = the transpose of x, matrix by matrix; short rows of y that x lacks become zeros."""
    (batch, cols, rows), size = y.shape, y.dtype.itemsize
    orders = [(rows, cols, scatter), (cols, rows, pieces)]  # short and long rows
    vectorised = [order for order in orders if order[1] * size % 16 == 0]
    short, long, kernel = min(vectorised or orders, key=lambda order: order[0])
    grid, block, vectors, shared_bytes = geometry(batch, short, long * size)
    if shared_bytes > MAX_BYTES or short >= MAX_SHORT:
        raise TooLarge(f"rows of {short} elements on one side, and of {long} on the other, are none of them short")
    if kernel is pieces:
        x = reshape(x, batch, rows * cols)
    else:
        y = reshape(y, batch, rows * cols)
    arguments = as_words(x), as_words(y), np.uint32(short), np.uint32(vectors)
    return Launch(specialise_kernel(kernel, size, short % 2 == 0), grid, block, arguments, shared_bytes)


def launches(x, y, problem):
    """y = x in another layout."""
    return [transpose(*problem.as_matrices(x, y))]
