"""Rows that are too short for tiles make long runs together: 3 channels, or the 4 of a vector.

Of a tile, 3 channels fill a twentieth. But 64 such rows without gaps are one run of memory, and make 64 neighbours in
each of the long rows on the other side. A block takes such a run into shared memory as it lies, and puts vectors of the
long rows together of elements that lie a short row apart (`pieces`); or the other way round, where the short rows are
the target's (`scatter`).

Elements that neighbouring threads pick lie 16 / B short rows apart. Where these are even in length, that may be 4 or 8
or 16 times 32 banks, and a vector is left empty after each 32 of the run. A warp then takes at most six passes.

Costs for elements of B bytes, and SHORT rows that make whole sectors:

    B / 32                          sectors read per element
    B / 32                          sectors written per element
    1                               barriers per block

Takes long rows that are whole vectors, and short ones of which a block's shared memory holds a vector or eight.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.views import reshaped
from labkit.ladder import Launch, TooLarge
from labkit.layouts.elements import BITS, as_words
from labkit.layouts.transpose import BACK, NARROW, TO
from labkit.ptx import load4, store4

EXAMPLES = (
    (2, 40, 7, 7, *TO),
    (1, 3, 40, 25, *TO),
    (2, 3, 8, 11, *BACK),
    (2, 8, 3, 24, "NCHW", "NCHW_VECT_C"),
    (1, 31, 20, 34, *TO),
    (1, 31, 20, 34, *BACK),
)
BENCHED = (*NARROW, (64, 256, 56, 56, "NCHW", "NCHW_VECT_C"), (64, 256, 56, 56, "NCHW_VECT_C", "NCHW"))
THREADS = 128
ELEMENT = np.uint32
PACK = 4 // np.dtype(ELEMENT).itemsize  # elements in a word
SIDE = 4 * PACK  # elements of a vector
EVERY = 1 << 28  # vectors of the run, after which one is left empty
EVERY_IF_EVEN = 32
FRACTION = 22  # bits of a reciprocal
LOW, HALF = np.uint32(0xFFFF), np.uint32(16)
LEAST_VECTORS = 8  # of a long row, that a block moves
RUN_BYTES = 16 * 1024  # that it should hold
MOST_SHORT = 1 << 10  # so that the product of a number and a reciprocal is below 2^32
MOST_BYTES = 227 * 1024  # of shared memory, that a block can have on compute capability 9.0


@cuda.jit(device=True)
def spread(vector):
    """Where a vector of the run lies, in vectors."""
    return np.uint32(vector + vector // np.uint32(EVERY))


@cuda.jit(device=True)
def at(element):
    """Where an element of the run lies, in elements."""
    return np.uint32(element + element // np.uint32(SIDE * EVERY) * np.uint32(SIDE))


@cuda.jit(device=True)
def picked(run, place, apart):
    """A word of elements that lie so far apart."""
    if PACK == 1:
        return run[at(place)]
    return np.uint32(run[at(place)]) | np.uint32(run[at(np.uint32(place + apart))]) << HALF


@cuda.jit(device=True)
def put(run, place, apart, word):
    """As `picked`, the other way round."""
    if PACK == 1:
        run[at(place)] = word
    else:
        run[at(place)], run[at(np.uint32(place + apart))] = ELEMENT(word & LOW), ELEMENT(word >> HALF)


@cuda.jit
def pieces(x, y, short, vectors):
    run = cuda.shared.array(0, ELEMENT)
    words = cuda.shared.array(0, np.uint32, alignment=16)  # the same memory
    n, t = np.uint32(cuda.blockIdx.y), np.uint32(cuda.threadIdx.x)
    first = np.uint32(cuda.blockIdx.x * vectors)
    here = np.uint32(min(vectors, np.uint32(np.uint32(y.shape[2]) // np.uint32(4) - first)))
    reciprocal = np.uint32(np.uint32((1 << FRACTION) + here - 1) // here)
    for v in range(t, np.uint32(here * short), np.uint32(THREADS)):
        a, b, c, d = load4(x, (n, np.uint32(4 * (first * short + v))))
        store4(words, np.uint32(4 * spread(v)), a, b, c, d)
    cuda.syncthreads()
    step = np.uint32(PACK * short)
    for v in range(t, np.uint32(here * short), np.uint32(THREADS)):
        row = np.uint32(np.uint32(v * reciprocal) >> np.uint32(FRACTION))  # v // here, as both are small
        vector = np.uint32(v - row * here)
        place = np.uint32(SIDE * vector * short + row)
        a, b = picked(run, place, short), picked(run, np.uint32(place + step), short)
        c, d = picked(run, np.uint32(place + 2 * step), short), picked(run, np.uint32(place + 3 * step), short)
        store4(y, (n, row, np.uint32(4 * (first + vector))), a, b, c, d)


@cuda.jit
def scatter(x, y, short, vectors):
    run = cuda.shared.array(0, ELEMENT)
    words = cuda.shared.array(0, np.uint32, alignment=16)  # the same memory
    n, t = np.uint32(cuda.blockIdx.y), np.uint32(cuda.threadIdx.x)
    first = np.uint32(cuda.blockIdx.x * vectors)
    here = np.uint32(min(vectors, np.uint32(np.uint32(x.shape[2]) // np.uint32(4) - first)))
    reciprocal = np.uint32(np.uint32((1 << FRACTION) + here - 1) // here)
    step = np.uint32(PACK * short)
    for v in range(t, np.uint32(here * short), np.uint32(THREADS)):
        row = np.uint32(np.uint32(v * reciprocal) >> np.uint32(FRACTION))  # v // here, as both are small
        vector = np.uint32(v - row * here)
        a = b = c = d = np.uint32(0)  # in rows that the source lacks
        if row < np.uint32(x.shape[1]):
            a, b, c, d = load4(x, (n, row, np.uint32(4 * (first + vector))))
        place = np.uint32(SIDE * vector * short + row)
        put(run, place, short, a)
        put(run, np.uint32(place + step), short, b)
        put(run, np.uint32(place + 2 * step), short, c)
        put(run, np.uint32(place + 3 * step), short, d)
    cuda.syncthreads()
    for v in range(t, np.uint32(here * short), np.uint32(THREADS)):
        a, b, c, d = load4(words, np.uint32(4 * spread(v)))
        store4(y, (n, np.uint32(4 * (first * short + v))), a, b, c, d)


def geometry(batch: int, short: int, long_bytes: int):
    """Grid, block, the vectors of a long row that a block moves, and its bytes of shared memory."""
    fitting = RUN_BYTES // (16 * short) // LEAST_VECTORS * LEAST_VECTORS
    vectors = min(max(fitting, LEAST_VECTORS), -(-long_bytes // 16))
    run = vectors * short
    empty = run // EVERY_IF_EVEN if short % 2 == 0 else 0
    return (-(-long_bytes // (16 * vectors)), batch), THREADS, vectors, 16 * (run + empty)


@cache
def kernel_for(kernel, itemsize: int, even: bool):
    """The kernel for elements of so many bytes, and short rows that are even in length or not."""
    return specialise(kernel, ELEMENT=BITS[itemsize], EVERY=EVERY_IF_EVEN if even else EVERY)


def transpose(x, y) -> Launch:
    """y = the transpose of x, matrix by matrix; where y has the short rows, x may lack some, which become zeros."""
    (batch, cols, rows), size = y.shape, y.dtype.itemsize
    ways = [(rows, cols, scatter), (cols, rows, pieces)]  # short and long rows
    whole = [way for way in ways if way[1] * size % 16 == 0]
    short, long, kernel = min(whole or ways, key=lambda way: way[0])
    grid, block, vectors, shared_bytes = geometry(batch, short, long * size)
    if shared_bytes > MOST_BYTES or short >= MOST_SHORT:
        raise TooLarge(f"rows of {short} elements on one side, and of {long} on the other, are none of them short")
    if kernel is pieces:
        x = reshaped(x, batch, rows * cols)
    else:
        y = reshaped(y, batch, rows * cols)
    arguments = as_words(x), as_words(y), np.uint32(short), np.uint32(vectors)
    return Launch(kernel_for(kernel, size, short % 2 == 0), grid, block, arguments, shared_bytes)


def launches(x, y, problem):
    """y = x in another layout."""
    return [transpose(*problem.as_matrices(x, y))]
