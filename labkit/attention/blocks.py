"""Where a block is in a grid of three axes, and grids that would have too many blocks along y or z: they lie along x.

A GPU takes 2**31 - 1 blocks along x, and 65,535 along y and along z.
"""

from functools import cache
from math import prod

import numpy as np

from labkit import cuda, specialise
from labkit.ladder import MAX_BLOCKS

FOLDED = False  # whether all blocks lie along x


@cuda.jit(device=True)
def divided(a, b):
    """The quotient and the remainder of two numbers that are not negative, in 32 bits, where numba would take 64."""
    quotient = np.int32(np.uint32(a) // np.uint32(b))
    return quotient, np.int32(a - quotient * b)


@cuda.jit(device=True)
def place_of_block(width, height):
    """A block's place along x, y and z, in a grid of `width` blocks along x and `height` along y."""
    if FOLDED:
        row, x = divided(cuda.blockIdx.x, width)
        z, y = divided(row, height)
        return x, y, z
    return np.int32(cuda.blockIdx.x), np.int32(cuda.blockIdx.y), np.int32(cuda.blockIdx.z)


@cuda.jit(device=True)
def place_from_the_end(width, height):
    """As `place_of_block`, but along x the first blocks have the last places."""
    x, y, z = place_of_block(width, height)
    if FOLDED:
        return np.int32(width - 1 - x), y, z
    return np.int32(cuda.gridDim.x - 1 - x), y, z


def within_limits(kernel, grid: tuple[int, ...]) -> tuple:
    """The kernel and its grid; where that has too many blocks along y or z, a copy for a grid along x.

    Blocks have the same order in both.
    """
    if all(count <= most for count, most in zip(grid[1:], MAX_BLOCKS[1:])):
        return kernel, grid
    return _folded(kernel), prod(grid)


@cache
def _folded(kernel):
    return specialise(kernel, FOLDED=True)
