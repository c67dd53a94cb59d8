"""Arrays whose neighbours along the last axis are neighbours in both: copied a vector a thread.

The vectors are numbered as the target has them, so that a warp writes a run of memory. A vector of channels, of 8 or 16
bytes, is a last axis too, and stays as it is.

Costs, for each vector of the target: it is written once, and read once, in a sector that may hold a second one.
"""

from math import prod

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import address_of, extent
from labkit.arrays.views import as_strided
from labkit.ladder import Launch
from labkit.ptx import load4, store4

THREADS = 256
EACH = 4  # vectors of a thread, all of which it loads before it stores one
WIDTHS = {16: np.dtype(np.uint32), 8: np.dtype(np.uint16)}  # bytes of a vector, and what it has four of
MOST = 2**31


@cuda.jit(device=True)
def place(vector, lengths, strides):
    """Where a vector lies, in elements, by its number."""
    line = np.uint32(vector // lengths[3])
    plane = np.uint32(line // lengths[2])
    outer, inner = np.uint32(plane // lengths[1]), plane % lengths[1]
    row, col = line % lengths[2], vector % lengths[3]
    return outer * strides[0] + inner * strides[1] + row * strides[2] + col * strides[3]


@cuda.jit
def copy_vectors(x, y, count, lengths, x_strides, y_strides):
    held = cuda.local.array((EACH, 4), x.dtype)
    first = np.uint32(cuda.blockIdx.x * (EACH * THREADS) + cuda.threadIdx.x)
    for i in range(EACH):
        vector = np.uint32(first + i * THREADS)
        if vector < count:
            held[i, 0], held[i, 1], held[i, 2], held[i, 3] = load4(x, place(vector, lengths, x_strides))
    for i in range(EACH):
        vector = np.uint32(first + i * THREADS)
        if vector < count:
            store4(y, place(vector, lengths, y_strides), held[i, 0], held[i, 1], held[i, 2], held[i, 3])


def copy_runs(source, target) -> Launch | None:
    """target = source for arrays of four axes, or None where the last is not one of whole vectors in both."""
    for width, dtype in WIDTHS.items():
        if all(_in_vectors(X, width) for X in (source, target)) and prod(target.shape) < MOST:
            *outer, cols = target.shape
            vectors = cols * target.dtype.itemsize // width
            sizes = tuple(map(np.uint32, (*outer, vectors)))
            strides = [
                tuple(map(np.int64, (*(n // dtype.itemsize for n in X.strides[:-1]), 4))) for X in (source, target)
            ]
            count = prod(outer) * vectors
            arguments = (*(_all_of(X, dtype) for X in (source, target)), np.uint32(count), sizes, *strides)
            return Launch(copy_vectors, -(-count // (EACH * THREADS)), THREADS, arguments)
    return None


def _in_vectors(X, width):
    *outer, step = X.strides
    row_bytes = X.shape[-1] * X.dtype.itemsize
    whole = not any(n % width for n in (address_of(X), *outer, row_bytes))
    return whole and step == X.dtype.itemsize and min(outer) >= 0


def _steps(X, dtype):
    """From a vector to the next along each axis, in elements of a quarter of one."""
    return tuple(map(np.int64, (*(step // dtype.itemsize for step in X.strides[:-1]), 4)))


def _all_of(X, dtype):
    """The memory from the first element of an array to the last, as a vector."""
    _, end = extent(X.shape, X.strides, X.dtype.itemsize)
    return as_strided(X, (end // dtype.itemsize,), (dtype.itemsize,), dtype)
