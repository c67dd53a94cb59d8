"""Counts, means and sums of squared deviations, merged over the threads of a warp and of a block.

No merge subtracts large, nearly equal numbers: values far from zero lose nothing. A mean is the sum of two floats,
`mean` and the rounding error of it, `mean_low`; `m2` is the sum of squared deviations from it. The order is fixed: two
runs give the same bits. (Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
Variances, 1979; Dekker, A Floating-Point Technique for Extending the Available Precision, 1971.)
"""

import numpy as np

from labkit import cuda

WARP = 32
MOMENT_FIELDS = 4  # of the shared array for the warps' moments


@cuda.jit(device=True)
def merge_moments(count, mean, mean_low, m2, other_count, other_mean, other_mean_low, other_m2):
    """Merge the counts, means and m2 of two sets of values; either may be empty."""
    mean = mean if count > np.float32(0) else other_mean
    total_count = count + other_count
    share = other_count / total_count if total_count > np.float32(0) else np.float32(0)
    delta = (other_mean - mean) + (other_mean_low - mean_low)
    mean_low += delta * share
    rounded = mean + mean_low
    return total_count, rounded, mean_low - (rounded - mean), m2 + other_m2 + delta * delta * count * share


@cuda.jit(device=True)
def warp_moments(count, mean, mean_low, m2):
    """Merge the moments of all lanes of a warp, in lane 0."""
    offset = WARP // 2
    while offset > 0:
        other_count = cuda.shfl_down_sync(0xFFFFFFFF, count, offset)
        other_mean = cuda.shfl_down_sync(0xFFFFFFFF, mean, offset)
        other_mean_low = cuda.shfl_down_sync(0xFFFFFFFF, mean_low, offset)
        other_m2 = cuda.shfl_down_sync(0xFFFFFFFF, m2, offset)
        count, mean, mean_low, m2 = merge_moments(
            count, mean, mean_low, m2, other_count, other_mean, other_mean_low, other_m2
        )
        offset //= 2
    return count, mean, mean_low, m2


@cuda.jit(device=True)
def block_moments(count, mean, mean_low, m2, per_warp):
    """Merge the moments of all threads of a block, in its thread 0. All threads must call.

    `per_warp` is a shared float32 array of `MOMENT_FIELDS` rows, with one element per warp of the block.
    """
    count, mean, mean_low, m2 = warp_moments(count, mean, mean_low, m2)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        per_warp[0, t // WARP], per_warp[1, t // WARP] = count, mean
        per_warp[2, t // WARP], per_warp[3, t // WARP] = mean_low, m2
    cuda.syncthreads()
    if t < WARP:
        count = mean = mean_low = m2 = np.float32(0)
        if t < cuda.blockDim.x // WARP:
            count, mean, mean_low, m2 = per_warp[0, t], per_warp[1, t], per_warp[2, t], per_warp[3, t]
        count, mean, mean_low, m2 = warp_moments(count, mean, mean_low, m2)
    return count, mean, mean_low, m2
