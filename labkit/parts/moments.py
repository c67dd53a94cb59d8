"""Counts, means and sums of squares about the mean of parts of some values, merged into those of all of them.

No merge subtracts large numbers that are nearly the same: nothing is lost however far the values are from zero. A mean
is the sum of two floats, the second of which is what rounding took from the first. Always in the same order: two runs
give the same bits. (Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances,
1979; Dekker, A Floating-Point Technique for Extending the Available Precision, 1971.)
"""

import numpy as np

from labkit import cuda

WARP = 32
ROWS = 4  # of shared memory, in which warps leave their moments


@cuda.jit(device=True)
def merged(count, mean, rest, squares, other_count, other_mean, other_rest, other_squares):
    """Count, mean in two floats, and squares of two parts together; either may be empty."""
    mean = mean if count > np.float32(0) else other_mean
    total = count + other_count
    share = other_count / total if total > np.float32(0) else np.float32(0)
    away = (other_mean - mean) + (other_rest - rest)
    rest += away * share
    rounded = mean + rest
    return total, rounded, rest - (rounded - mean), squares + other_squares + away * away * count * share


@cuda.jit(device=True)
def of_warp(count, mean, rest, squares):
    """Those of all lanes of a warp, in lane 0."""
    away = WARP // 2
    while away > 0:
        other_count = cuda.shfl_down_sync(0xFFFFFFFF, count, away)
        other_mean = cuda.shfl_down_sync(0xFFFFFFFF, mean, away)
        other_rest = cuda.shfl_down_sync(0xFFFFFFFF, rest, away)
        other_squares = cuda.shfl_down_sync(0xFFFFFFFF, squares, away)
        count, mean, rest, squares = merged(
            count, mean, rest, squares, other_count, other_mean, other_rest, other_squares
        )
        away //= 2
    return count, mean, rest, squares


@cuda.jit(device=True)
def of_block(count, mean, rest, squares, of_warps):
    """Those of all threads of a block, in its thread 0. All threads must call.

    `of_warps` is a shared array of `ROWS` rows, with an element for each warp of the block.
    """
    count, mean, rest, squares = of_warp(count, mean, rest, squares)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[0, t // WARP], of_warps[1, t // WARP] = count, mean
        of_warps[2, t // WARP], of_warps[3, t // WARP] = rest, squares
    cuda.syncthreads()
    if t < WARP:
        count = mean = rest = squares = np.float32(0)
        if t < cuda.blockDim.x // WARP:
            count, mean, rest, squares = of_warps[0, t], of_warps[1, t], of_warps[2, t], of_warps[3, t]
        count, mean, rest, squares = of_warp(count, mean, rest, squares)
    return count, mean, rest, squares
