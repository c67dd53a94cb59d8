"""Mask, softmax and output of a `wgmma` accumulator: each thread has parts of two rows, 8 apart.

Of four elements the first two are in the upper row (r = 0), the others in the lower one (r = 1). Four neighbouring
threads share a row. `lane` and `warp` are those of `wgmma`: a warp of a warpgroup has 16 rows.
"""

from math import log

import numpy as np

from labkit import cuda, ptx

FORMAT = ptx.BF16
MASKED = np.float32(-np.inf)  # score of a masked key
LN_2 = np.float32(log(2))
ALL_LANES = 0xFFFFFFFF  # mask of a shuffle
ROWS = 64  # of a warpgroup


@cuda.jit(device=True)
def tile_range(row0, num_rows, num_queries, num_keys, window, tile_keys):
    """First tile of keys that some query of rows row0 to row0 + num_rows sees, and the end of these tiles."""
    last_key = min(num_keys, min(row0 + num_rows, num_queries) + window[1]) - 1
    return np.int32(max(0, row0 + window[0]) // tile_keys), np.int32(last_key // tile_keys + 1)


@cuda.jit(device=True)
def apply_mask(S, row0, col0, lane, warp, num_keys, window):
    """Set masked scores of a warpgroup's rows, from row0 on, and of a tile's keys, from col0 on, to minus infinity."""
    width = S.shape[0] * 2
    if col0 + width > num_keys or col0 + width - 1 > row0 + window[1] or col0 < row0 + ROWS - 1 + window[0]:
        for r in range(2):
            row, column = np.int32(row0 + warp % 4 * 16 + lane // 4 + 8 * r), np.int32(col0 + lane % 4 * 2)
            first, last = np.int32(row + window[0] - column), np.int32(min(num_keys - 1, row + window[1]) - column)
            for n in range(0, S.shape[0], 4):
                for i in range(2):
                    offset = np.int32(2 * n + i)
                    if offset < first or offset > last:
                        S[n + 2 * r + i] = MASKED


@cuda.jit(device=True)
def exp_tile(S, r, row_max, row_sum, scale):
    """Replace the scores of a row by P = exp2(scale * S - maximum).

    Returns the running maximum, the running sum of this thread's elements of P, and the factor alpha that rescales
    earlier sums.
    """
    new_max = row_max
    for n in range(2 * r, S.shape[0], 4):
        new_max = cuda.libdevice.fmaxf(new_max, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    new_max = cuda.libdevice.fmaxf(new_max, cuda.shfl_xor_sync(ALL_LANES, new_max, 1))
    new_max = cuda.libdevice.fmaxf(new_max, cuda.shfl_xor_sync(ALL_LANES, new_max, 2))
    safe_max = np.float32(0) if new_max == MASKED else new_max * scale
    alpha = ptx.exp2(row_max * scale - safe_max)
    row_sum *= alpha
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * scale - safe_max)
            row_sum += S[n + i]
    return new_max, row_sum, alpha


@cuda.jit(device=True)
def pack(P, S):
    """Round P to the format: two elements per register, four registers per fragment of `wgmma`."""
    for n in range(P.shape[0]):
        P[n] = ptx.pack2(S[2 * n], S[2 * n + 1], FORMAT)


@cuda.jit(device=True)
def rescale(O, r, factor):
    """Multiply this thread's elements of a row of O."""
    for n in range(2 * r, O.shape[0], 4):
        O[n] *= factor
        O[n + 1] *= factor


@cuda.jit(device=True)
def divide(O, r, row_max, row_sum, scale):
    """Divide a row of O by the sum of P over its four threads, and return its log-sum-exp."""
    row_sum += cuda.shfl_xor_sync(ALL_LANES, row_sum, 1)
    row_sum += cuda.shfl_xor_sync(ALL_LANES, row_sum, 2)
    return divide_by_sum(O, r, row_max * scale, row_sum)


@cuda.jit(device=True)
def divide_by_sum(O, r, ref_max, row_sum):
    """Divide a row of O by its whole sum, and return its log-sum-exp; ref_max is the exponent of a weight of 1."""
    recip, row_lse = np.float32(0), MASKED
    if row_sum != np.float32(0):  # nor is NaN
        recip, row_lse = np.float32(1) / row_sum, ref_max * LN_2 + log(row_sum)
    rescale(O, r, recip)
    return row_lse


@cuda.jit(device=True)
def store_rows(O, tile, y, lane, warp):
    """Store a warpgroup's rows of an accumulator, rounded, to a swizzled tile of boxes, from its row y on."""
    row, half = y + warp % 4 * 16 + lane % 16, lane // 16  # of the 16 bytes that this lane stores
    for vec in range(0, O.shape[0] // 4, 2):
        n = vec * 4
        ptx.stmatrix4(
            tile,
            (0, vec // 8, row, (vec % 8 + half ^ row % 8) * 4),
            ptx.pack2(O[n], O[n + 1], FORMAT),
            ptx.pack2(O[n + 2], O[n + 3], FORMAT),
            ptx.pack2(O[n + 4], O[n + 5], FORMAT),
            ptx.pack2(O[n + 6], O[n + 7], FORMAT),
        )
    ptx.fence_async()
