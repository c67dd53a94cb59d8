"""Operands that cannot be taken as they lie: copied into rows that are whole 16-byte pieces, with zeros at the end.

A block moves a tile, a row of 32 lanes at a time. Where neighbours of the source lie along its columns, reading rows
would fetch a sector for each element: `turn` reads along the columns, into shared memory, and writes rows from there.
The tile's rows are a bank longer than its columns, so that a column of it meets every bank once. (Ruetsch and
Micikevicius, Optimizing Matrix Transpose in CUDA, 2009.)

Costs, for each element of the target: it is written once, and what the source has of it is read once.
"""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.addresses import lies_in_pieces
from labkit.arrays.views import as_batch, as_bits
from labkit.arrays.workspace import Workspace
from labkit.ladder import Launch

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}

ELEMENT = np.uint16
TILE = 64  # elements along each side
PITCH = TILE + 4 // np.dtype(ELEMENT).itemsize  # elements from a row of the tile to the next, one bank more
LANES, WARPS = 32, 8
ROWS, COLUMNS = TILE // WARPS, TILE // LANES  # elements of a thread, all of which it loads before it stores one


@cuda.jit(device=True)
def tile_of(block, rows, cols):
    """Which matrix, and where in it the block's tile begins."""
    down, across = (rows + TILE - 1) // TILE, (cols + TILE - 1) // TILE
    return block // (down * across), block // across % down * TILE, block % across * TILE


@cuda.jit
def copy(source, target):
    held = cuda.local.array((ROWS, COLUMNS), ELEMENT)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    z, top, left = tile_of(np.uint32(cuda.blockIdx.x), np.uint32(target.shape[1]), np.uint32(target.shape[2]))
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + i * WARPS + warp, left + j * LANES + lane
            inside = row < source.shape[1] and col < source.shape[2]
            held[i, j] = source[z, row, col] if inside else ELEMENT(0)
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + i * WARPS + warp, left + j * LANES + lane
            if row < target.shape[1] and col < target.shape[2]:
                target[z, row, col] = held[i, j]


@cuda.jit
def turn(source, target):
    tile = cuda.shared.array((TILE, PITCH), ELEMENT)  # a row of it is a column of the source
    held = cuda.local.array((ROWS, COLUMNS), ELEMENT)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    z, top, left = tile_of(np.uint32(cuda.blockIdx.x), np.uint32(target.shape[1]), np.uint32(target.shape[2]))
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + j * LANES + lane, left + i * WARPS + warp
            inside = row < source.shape[1] and col < source.shape[2]
            held[i, j] = source[z, row, col] if inside else ELEMENT(0)
    for i in range(ROWS):
        for j in range(COLUMNS):
            tile[i * WARPS + warp, j * LANES + lane] = held[i, j]
    cuda.syncthreads()
    for i in range(ROWS):
        for j in range(COLUMNS):
            row, col = top + i * WARPS + warp, left + j * LANES + lane
            if row < target.shape[1] and col < target.shape[2]:
                target[z, row, col] = tile[j * LANES + lane, i * WARPS + warp]


@cache
def for_elements(kernel, itemsize: int):
    """The kernel for elements of so many bytes, as whose bits it moves them."""
    return specialise(kernel, ELEMENT=BITS[itemsize])


def rearrange(source, target) -> Launch:
    """target = source as far as both go, and zeros beyond; element for element, whatever their strides."""
    source, target = as_batch(as_bits(source)), as_batch(as_bits(target))
    along_columns = abs(source.strides[1]) < abs(source.strides[2])
    kernel = for_elements(turn if along_columns else copy, target.dtype.itemsize)
    batches, rows, cols = target.shape
    tiles = batches * -(-rows // TILE) * -(-cols // TILE)
    return Launch(kernel, tiles, (LANES, WARPS), (source, target))


def arranged(X, shape: tuple[int, int], role: str, workspace: Workspace, made: list[Launch], gaps: bool = True):
    """The matrix, or the batch, with rows that vector copies take, padded with zeros to this shape.

    It is X itself if that is so already; where `gaps` is false rows must also follow one another at once. Otherwise it
    is a copy in the workspace's piece of that role, whose launch comes to those that were `made`.
    """
    if lies_in_pieces(X, shape, gaps):
        return X
    target = workspace.array(role, (*X.shape[:-2], *shape), X.dtype)
    made.append(rearrange(X, target))
    return target
