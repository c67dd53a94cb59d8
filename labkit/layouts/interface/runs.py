"""Copies between arrays that are both contiguous along the last axis: four vectors per thread.

Vectors are numbered in the target's order, so a warp writes contiguous memory. A vector of channels, of 8 or 16 bytes,
counts as a last axis too.

Costs, for each vector of the target: it is written once and read once; an 8- or 16-byte read uses part of a
32-byte sector.
"""

from math import prod

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import address_of, extent
from labkit.arrays.views import as_strided
from labkit.ladder import Launch
from labkit.ptx import load4, store4

THREADS = 256
VECTORS = 4  # per thread, which loads all before it stores one
WIDTHS = {16: np.dtype(np.uint32), 8: np.dtype(np.uint16)}  # bytes of a vector, and the type of its four parts
MAX_SIZE = 2**31  # elements that a 32-bit index counts


@cuda.jit(device=True)
def vector_offset(vector, lengths, strides):
    """Return the offset of a vector, in elements; `vector` is its number in the order of four axes."""
    line = np.uint32(vector // lengths[3])
    plane = np.uint32(line // lengths[2])
    outer, inner = np.uint32(plane // lengths[1]), plane % lengths[1]
    row, col = line % lengths[2], vector % lengths[3]
    return outer * strides[0] + inner * strides[1] + row * strides[2] + col * strides[3]


@cuda.jit
def copy_vectors(x, y, count, lengths, x_strides, y_strides):
    values = cuda.local.array((VECTORS, 4), x.dtype)
    first = np.uint32(cuda.blockIdx.x * (VECTORS * THREADS) + cuda.threadIdx.x)
    for i in range(VECTORS):
        vector = np.uint32(first + i * THREADS)
        if vector < count:
            values[i, 0], values[i, 1], values[i, 2], values[i, 3] = load4(x, vector_offset(vector, lengths, x_strides))
    for i in range(VECTORS):
        vector = np.uint32(first + i * THREADS)
        if vector < count:
            store4(y, vector_offset(vector, lengths, y_strides), values[i, 0], values[i, 1], values[i, 2], values[i, 3])


def make_vector_copy(source, target) -> Launch | None:
    """Return the launch of target = source for arrays of four axes; None if 16- or 8-byte vectors do not fit."""
    for width, dtype in WIDTHS.items():
        if all(_is_vectorised(X, width) for X in (source, target)) and prod(target.shape) < MAX_SIZE:
            *outer, cols = target.shape
            vectors = cols * target.dtype.itemsize // width
            lengths = tuple(map(np.uint32, (*outer, vectors)))
            outer_strides = ([np.int64(n // dtype.itemsize) for n in X.strides[:-1]] for X in (source, target))
            strides = [(*strides, np.int64(4)) for strides in outer_strides]  # the last from a vector to the next
            count = prod(outer) * vectors
            views = [_as_vector(X, dtype) for X in (source, target)]
            arguments = *views, np.uint32(count), lengths, *strides
            return Launch(copy_vectors, -(-count // (VECTORS * THREADS)), THREADS, arguments)
    return None


def _is_vectorised(X, width):
    *outer, step = X.strides
    row_bytes = X.shape[-1] * X.dtype.itemsize
    is_aligned = not any(n % width for n in (address_of(X), *outer, row_bytes))
    return is_aligned and step == X.dtype.itemsize and min(outer) >= 0


def _as_vector(X, dtype):
    """View the memory from the first element of an array to the last as one axis."""
    _, end = extent(X.shape, X.strides, X.dtype.itemsize)
    return as_strided(X, (end // dtype.itemsize,), (dtype.itemsize,), dtype)
