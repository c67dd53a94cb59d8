"""16-byte vectors per thread and operand: four elements of float32, or eight of 16 bits.

A thread loads `VECTORS` vectors of both operands before it computes the first element: 64 bytes are in flight. It loads
16-bit elements in pairs, as 32-bit words. Rows may have gaps between them: the kernel reads arrays as vectors of words,
and a row begins at a multiple of its pitch.

Costs, in passes over memory: gate and up are read once, y is written once. Limit: memory bandwidth.
"""

import math
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import extent, has_vector_rows
from labkit.arrays.views import as_strided
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.ladder.sizes import COUNT_LIMIT

IS_SINGLE, FORMAT, WORD = True, ptx.BF16, np.float32  # whether elements are float32; else the format of pairs in words
VECTORS = 2  # vectors per thread and operand
THREADS = 256
EXAMPLES = (1, 8), (5, 48), (2, 1000), (3, 4096)  # tested sizes, with rows of whole vectors
HALF, ROOT = np.float32(0.5), np.float32(1 / math.sqrt(2))


@cuda.jit(device=True)
def geglu(g, u):
    return HALF * g * (np.float32(1) + math.erf(g * ROOT)) * u


@cuda.jit(device=True)
def geglu_words(g, u):
    if IS_SINGLE:
        return geglu(g, u)
    (g_low, g_high), (u_low, u_high) = ptx.unpack2(g, FORMAT), ptx.unpack2(u, FORMAT)
    return ptx.pack2(geglu(g_low, u_low), geglu(g_high, u_high), FORMAT)


@cuda.jit(launch_bounds=THREADS)
def vectors(gate, up, y, pitches, count, vectors_per_row):
    g, u = cuda.local.array((VECTORS, 4), WORD), cuda.local.array((VECTORS, 4), WORD)
    first = np.uint32(cuda.blockIdx.x * (VECTORS * THREADS) + cuda.threadIdx.x)
    for i in range(VECTORS):
        vector = np.uint32(first + i * THREADS)
        if vector < count:
            row, col = np.int64(vector // vectors_per_row), np.int64(vector % vectors_per_row) * 4
            g[i, 0], g[i, 1], g[i, 2], g[i, 3] = ptx.load4(gate, row * pitches[0] + col)
            u[i, 0], u[i, 1], u[i, 2], u[i, 3] = ptx.load4(up, row * pitches[1] + col)
    for i in range(VECTORS):
        vector = np.uint32(first + i * THREADS)
        if vector < count:
            row, col = np.int64(vector // vectors_per_row), np.int64(vector % vectors_per_row) * 4
            for e in range(4):
                g[i, e] = geglu_words(g[i, e], u[i, e])
            ptx.store4(y, row * pitches[2] + col, g[i, 0], g[i, 1], g[i, 2], g[i, 3])


@cache
def kernel_for(format):
    """Return the kernel for elements of a format."""
    if format == FP32:
        return vectors
    return specialise(vectors, IS_SINGLE=False, FORMAT=format.number, WORD=np.uint32)


def launches(gate, up, y, problem, format=FP32):
    """Return the launch that computes y."""
    problem.check(gate, up, y, dtype=format.dtype)
    if not all(has_vector_rows(X, (problem.rows, problem.columns)) for X in (gate, up, y)):
        raise TooLarge(f"rows of {problem.columns} elements of {format} are not whole vectors of 16 bytes")
    vectors_per_row = problem.columns * format.itemsize // 16
    count = problem.rows * vectors_per_row
    if count >= COUNT_LIMIT:
        raise TooLarge(f"there are {count} vectors, and threads count them in 31 bits")
    blocks = -(-count // (VECTORS * THREADS))
    words = [_view_as_words(X, np.float32 if format == FP32 else np.uint32) for X in (gate, up, y)]
    pitches = tuple(np.int64(X.strides[0] // 4) for X in (gate, up, y))
    arguments = *words, pitches, np.uint32(count), np.uint32(vectors_per_row)
    return [Launch(kernel_for(format), blocks, THREADS, arguments)] if blocks else []


def _view_as_words(X, dtype):
    """View the memory from the first element of a matrix to the last as 32-bit words."""
    _, end = extent(X.shape, X.strides, X.dtype.itemsize)
    return as_strided(X, (end // 4,), (4,), dtype)
