"""Counts, means and sums of squares about the mean of parts of some values, merged into those of all of them.

No merge subtracts large numbers that are nearly the same, so that nothing is lost however far the values are from zero.
Always in the same order: two runs give the same bits. (Chan, Golub and LeVeque, Updating Formulae and a Pairwise
Algorithm for Computing Sample Variances, 1979.)
"""

import numpy as np

from labkit import cuda

WARP = 32


@cuda.jit(device=True)
def merged(count, mean, squares, other_count, other_mean, other_squares):
    """Count, mean and squares of two parts together; either may be empty."""
    total = count + other_count
    share = other_count / total if total > np.float32(0) else np.float32(0)
    away = other_mean - mean
    return total, mean + away * share, squares + other_squares + away * away * count * share


@cuda.jit(device=True)
def of_warp(count, mean, squares):
    """Those of all lanes of a warp, in lane 0."""
    away = WARP // 2
    while away > 0:
        other_count = cuda.shfl_down_sync(0xFFFFFFFF, count, away)
        other_mean = cuda.shfl_down_sync(0xFFFFFFFF, mean, away)
        other_squares = cuda.shfl_down_sync(0xFFFFFFFF, squares, away)
        count, mean, squares = merged(count, mean, squares, other_count, other_mean, other_squares)
        away //= 2
    return count, mean, squares


@cuda.jit(device=True)
def of_block(count, mean, squares, of_warps):
    """Those of all threads of a block, in its thread 0. All threads must call.

    `of_warps` is a shared array of three rows, with an element for each warp of the block.
    """
    count, mean, squares = of_warp(count, mean, squares)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[0, t // WARP], of_warps[1, t // WARP], of_warps[2, t // WARP] = count, mean, squares
    cuda.syncthreads()
    if t < WARP:
        zero = np.float32(0)
        is_one = t < cuda.blockDim.x // WARP
        count = of_warps[0, t] if is_one else zero
        mean = of_warps[1, t] if is_one else zero
        squares = of_warps[2, t] if is_one else zero
        count, mean, squares = of_warp(count, mean, squares)
    return count, mean, squares
