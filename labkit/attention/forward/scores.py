"""What a thread of a warpgroup does to its scores and sums, where `wgmma` left them: parts of two rows, 8 apart.

Of four elements the first two lie in the upper row (r = 0), the others in the lower one (r = 1). Four neighbouring
threads share a row. `lane` and `warp` are those of `wgmma`: a warp of a warpgroup has 16 rows.
"""

from math import log

import numpy as np

from labkit import cuda, ptx

FORMAT = ptx.BF16
NONE = np.float32(-np.inf)  # the score of a key that is not seen
LN_2 = np.float32(log(2))
ALL = 0xFFFFFFFF
ROWS = 64  # of a warpgroup


@cuda.jit(device=True)
def seen(top, rows, queries, keys, band, width):
    """The first tile of `width` keys that some of these rows of queries see, and the one behind the last."""
    last = min(keys, min(top + rows, queries) + band[1]) - 1
    return np.int32(max(0, top + band[0]) // width), np.int32(last // width + 1)


@cuda.jit(device=True)
def hide(S, top, left, lane, warp, keys, band):
    """Takes away the scores of keys that a query does not see, where a tile has such: those from `left` on."""
    width = S.shape[0] * 2
    if left + width > keys or left + width - 1 > top + band[1] or left < top + ROWS - 1 + band[0]:
        for r in range(2):
            row, column = np.int32(top + warp % 4 * 16 + lane // 4 + 8 * r), np.int32(left + lane % 4 * 2)
            least, most = np.int32(row + band[0] - column), np.int32(min(keys - 1, row + band[1]) - column)
            for n in range(0, S.shape[0], 4):
                for i in range(2):
                    place = np.int32(2 * n + i)
                    if place < least or place > most:
                        S[n + 2 * r + i] = NONE


@cuda.jit(device=True)
def weigh(S, r, most, total, scale):
    """Makes weights of the scores of a row.

    Gives the greatest score so far, the sum of this thread's weights so far, and by what all shrinks that was summed
    before.
    """
    high = most
    for n in range(2 * r, S.shape[0], 4):
        high = cuda.libdevice.fmaxf(high, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 1))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 2))
    origin = np.float32(0) if high == NONE else high * scale
    shrinks = ptx.exp2(most * scale - origin)
    total *= shrinks
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * scale - origin)
            total += S[n + i]
    return high, total, shrinks


@cuda.jit(device=True)
def pack(P, S):
    """Rounds weights to the format; two lie in a register, and four of these are a fragment for `wgmma`."""
    for n in range(P.shape[0]):
        P[n] = ptx.pack2(S[2 * n], S[2 * n + 1], FORMAT)


@cuda.jit(device=True)
def shrink(O, r, factor):
    """Multiplies what a thread has of a row of O."""
    for n in range(2 * r, O.shape[0], 4):
        O[n] *= factor
        O[n + 1] *= factor


@cuda.jit(device=True)
def finish(O, r, most, total, scale):
    """Divides a row of O by the sum of its weights, and gives its log-sum-exp."""
    total += cuda.shfl_xor_sync(ALL, total, 1)
    total += cuda.shfl_xor_sync(ALL, total, 2)
    return divide(O, r, most * scale, total)


@cuda.jit(device=True)
def divide(O, r, origin, total):
    """As `finish`, by the total of the whole row; a weight of 1 has the exponent `origin`."""
    share, logarithm = np.float32(0), NONE
    if total != np.float32(0):  # nor is NaN
        share, logarithm = np.float32(1) / total, origin * LN_2 + log(total)
    shrink(O, r, share)
    return logarithm


@cuda.jit(device=True)
def put(O, tile, y, lane, warp):
    """Stores a warpgroup's rows of O, rounded, to a swizzled tile of boxes, from its row y on."""
    row, half = y + warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
    for piece in range(0, O.shape[0] // 4, 2):
        n = piece * 4
        ptx.stmatrix4(
            tile,
            (0, piece // 8, row, (piece % 8 + half ^ row % 8) * 4),
            ptx.pack2(O[n], O[n + 1], FORMAT),
            ptx.pack2(O[n + 2], O[n + 3], FORMAT),
            ptx.pack2(O[n + 4], O[n + 5], FORMAT),
            ptx.pack2(O[n + 6], O[n + 7], FORMAT),
        )
    ptx.fence_async()
