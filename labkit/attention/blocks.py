"""Indices of a block in a grid of three axes; grids with too many blocks along y or z become flat, along x.

A GPU takes 2**31 - 1 blocks along x, and 65,535 along y and along z.
"""

from functools import cache
from math import prod

import numpy as np

from labkit import cuda, specialise
from labkit.ladder import MAX_BLOCKS

IS_FLAT = False  # whether all blocks are along x


@cuda.jit(device=True)
def divmod_u32(a, b):
    """Quotient and remainder of two integers that are not negative, in 32 bits; numba would use 64."""
    quotient = np.int32(np.uint32(a) // np.uint32(b))
    return quotient, np.int32(a - quotient * b)


@cuda.jit(device=True)
def block_index(width, height):
    """Indices of a block along x, y and z, in a grid of `width` blocks along x and `height` along y."""
    if IS_FLAT:
        row, x = divmod_u32(cuda.blockIdx.x, width)
        z, y = divmod_u32(row, height)
        return x, y, z
    return np.int32(cuda.blockIdx.x), np.int32(cuda.blockIdx.y), np.int32(cuda.blockIdx.z)


@cuda.jit(device=True)
def block_from_end(width, height):
    """Indices of a block along x, y and z, reversed along x: the first block has the last index."""
    x, y, z = block_index(width, height)
    if IS_FLAT:
        return np.int32(width - 1 - x), y, z
    return np.int32(cuda.gridDim.x - 1 - x), y, z


def kernel_and_grid(kernel, grid: tuple[int, ...]) -> tuple:
    """Return a kernel and its grid; if that has too many blocks along y or z, a copy for a flat grid."""
    if all(count <= limit for count, limit in zip(grid[1:], MAX_BLOCKS[1:])):
        return kernel, grid
    return _flat(kernel), prod(grid)


@cache
def _flat(kernel):
    return specialise(kernel, IS_FLAT=True)
