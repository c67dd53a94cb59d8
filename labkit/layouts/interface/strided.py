"""Copies between arrays of any strides, with zeros past the end of the source.

A block moves a tile, a row of 32 lanes at a time. If the source is contiguous along its columns, reading rows would
fetch a sector per element. Then `transpose_tiles` reads along the columns into shared memory, and writes rows from
there. The tile's pitch is one bank longer than its rows: columns are free of bank conflicts. (Ruetsch and Micikevicius,
Optimizing Matrix Transpose in CUDA, 2009.)

In narrow matrices a tile would be nearly empty: there each thread moves elements by their number (`copy_elements`).

Costs, for each element of the target: it is written once, and read once if the source has it.
"""

from math import prod

import numpy as np

from labkit import cuda
from labkit.arrays.views import as_batch, as_bits, as_strided
from labkit.ladder import Launch
from labkit.layouts.elements import specialise_itemsize

ELEMENT = np.uint16  # unsigned integer of an element's size, set by `specialise_itemsize`
TILE = 64  # elements along each side
PITCH = TILE + max(4 // np.dtype(ELEMENT).itemsize, 1)  # elements from a row of the tile to the next: one more bank
LANES, WARPS = 32, 8
MIN_SIDE = 16  # rows and columns, below which there are no tiles
THREADS, ELEMENTS = 256, 4  # of a block; of a thread
MAX_SIZE = 2**31  # elements that a 32-bit index counts
ROWS, COLUMNS = TILE // WARPS, TILE // LANES  # elements of a thread, which loads all before it stores one


@cuda.jit(device=True)
def locate_tile(block, rows, cols):
    """Return the matrix of the block's tile, and the tile's first row and column."""
    down, across = np.uint32((rows + TILE - 1) // TILE), np.uint32((cols + TILE - 1) // TILE)
    line = np.uint32(block // across)
    return np.uint32(line // down), np.uint32(line % down * TILE), np.uint32(block % across * TILE)


@cuda.jit
def copy_tiles(source, target):
    values = cuda.local.array((ROWS, COLUMNS), ELEMENT)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    z, top, left = locate_tile(np.uint32(cuda.blockIdx.x), np.uint32(target.shape[2]), np.uint32(target.shape[3]))
    outer, inner = z // np.uint32(target.shape[1]), z % np.uint32(target.shape[1])
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + i * WARPS + warp, left + j * LANES + lane
            inside = row < np.uint32(source.shape[2]) and col < np.uint32(source.shape[3])
            values[i, j] = source[outer, inner, row, col] if inside else ELEMENT(0)
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + i * WARPS + warp, left + j * LANES + lane
            if row < np.uint32(target.shape[2]) and col < np.uint32(target.shape[3]):
                target[outer, inner, row, col] = values[i, j]


@cuda.jit
def transpose_tiles(source, target):
    tile = cuda.shared.array((TILE, PITCH), ELEMENT)  # a row of it is a column of the source
    values = cuda.local.array((ROWS, COLUMNS), ELEMENT)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    z, top, left = locate_tile(np.uint32(cuda.blockIdx.x), np.uint32(target.shape[2]), np.uint32(target.shape[3]))
    outer, inner = z // np.uint32(target.shape[1]), z % np.uint32(target.shape[1])
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + j * LANES + lane, left + i * WARPS + warp
            inside = row < np.uint32(source.shape[2]) and col < np.uint32(source.shape[3])
            values[i, j] = source[outer, inner, row, col] if inside else ELEMENT(0)
    for i in range(ROWS):
        for j in range(COLUMNS):
            tile[i * WARPS + warp, j * LANES + lane] = values[i, j]
    cuda.syncthreads()
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + i * WARPS + warp, left + j * LANES + lane
            if row < np.uint32(target.shape[2]) and col < np.uint32(target.shape[3]):
                target[outer, inner, row, col] = tile[j * LANES + lane, i * WARPS + warp]


@cuda.jit
def copy_elements(source, target, count):
    rows, cols = np.uint32(target.shape[2]), np.uint32(target.shape[3])
    planes = np.uint32(target.shape[1])
    for i in range(ELEMENTS):
        element = np.uint32(cuda.blockIdx.x * (ELEMENTS * THREADS) + i * THREADS + cuda.threadIdx.x)
        if element < count:
            line = np.uint32(element // cols)
            z = np.uint32(line // rows)
            row, col, outer, inner = line % rows, element % cols, z // planes, z % planes
            inside = row < np.uint32(source.shape[2]) and col < np.uint32(source.shape[3])
            target[outer, inner, row, col] = source[outer, inner, row, col] if inside else ELEMENT(0)


def make_strided_copy(source, target) -> Launch:
    """Return the launch of target = source, cropped or padded with zeros, for any strides.

    The arrays are matrices, or batches of them along one or two axes.
    """
    source, target = (with_two_batch_axes(as_batch(as_bits(X))) for X in (source, target))
    count = prod(target.shape)
    if min(target.shape[2:]) < MIN_SIDE and count < MAX_SIZE:
        kernel = specialise_itemsize(copy_elements, target.dtype.itemsize)
        return Launch(kernel, -(-count // (ELEMENTS * THREADS)), THREADS, (source, target, np.uint32(count)))
    along_columns = abs(source.strides[2]) < abs(source.strides[3])
    kernel = specialise_itemsize(transpose_tiles if along_columns else copy_tiles, target.dtype.itemsize)
    *batches, rows, cols = target.shape
    tiles = prod(batches) * -(-rows // TILE) * -(-cols // TILE)
    return Launch(kernel, tiles, (LANES, WARPS), (source, target))


def with_two_batch_axes(X):
    """View a batch of matrices with two batch axes."""
    return X if len(X.shape) == 4 else as_strided(X, (1, *X.shape), (X.shape[0] * X.strides[0], *X.strides))
