"""P in e4m3 from a `wgmma` accumulator of scores: each thread has parts of two rows, 8 apart; four share a row."""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.scores import MASKED

FORMAT = ptx.E4M3
MAX_EXPONENT = np.float32(8)  # greatest exponent of 2 in P: below 448, and 2**-14 times that is not subnormal
PER_POWER = np.float32(8)  # codes from one power of two to the next
CODE_OF_ONE = np.float32(56 - 0.4566)  # of exponent 0 on the line, such that P is right on average
MAX_CODE = np.float32(126)  # greatest code that is not NaN
ROUNDER = np.float32(2**23)  # a float32 plus that is an integer in its low bits
MIN_UNIT_RATIO = np.float32(2**-64)  # O stays finite: its unit is at least this times the largest scale of V so far
ALL_LANES = 0xFFFFFFFF  # mask of a shuffle


@cuda.jit(device=True)
def update_ref_max(S, r, ref_max, factor):
    """Update the exponent that gives P = 1 (ref_max) with the scores of a row; `factor` makes exponents of 2 of scores.

    Returns it, what to subtract from exponents, and the factor alpha that rescales earlier sums.
    """
    tile_max = MASKED
    for n in range(2 * r, S.shape[0], 4):
        tile_max = cuda.libdevice.fmaxf(tile_max, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    tile_max = cuda.libdevice.fmaxf(tile_max, cuda.shfl_xor_sync(ALL_LANES, tile_max, 1))
    tile_max = cuda.libdevice.fmaxf(tile_max, cuda.shfl_xor_sync(ALL_LANES, tile_max, 2))
    new_ref = cuda.libdevice.fmaxf(ref_max, tile_max * factor - MAX_EXPONENT)
    safe_ref = np.float32(0) if new_ref == MASKED else new_ref
    return new_ref, safe_ref, ptx.exp2(ref_max - safe_ref)


@cuda.jit(device=True)
def exp_tile(S, r, ref_max, row_sum, factor):
    """Replace the scores of a row by unnormalised P.

    Returns ref_max, the running sum of this thread's elements of P before they are rounded, and alpha.
    """
    new_ref, safe_ref, alpha = update_ref_max(S, r, ref_max, factor)
    row_sum *= alpha
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - safe_ref)
            row_sum += S[n + i]
    return new_ref, row_sum, alpha


@cuda.jit(device=True)
def exp_tile_unsummed(S, r, ref_max, factor):
    """Replace the scores of a row by unnormalised P, and return ref_max and alpha."""
    new_ref, safe_ref, alpha = update_ref_max(S, r, ref_max, factor)
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - safe_ref)
    return new_ref, alpha


@cuda.jit(device=True)
def scores_to_codes(S, r, ref_max, factor):
    """Replace the scores of a row by codes, in the lowest byte of each element, and return ref_max and alpha."""
    new_ref, safe_ref, alpha = update_ref_max(S, r, ref_max, factor)
    slope, offset = (factor * (PER_POWER / MAX_CODE), safe_ref * (PER_POWER / MAX_CODE) - CODE_OF_ONE / MAX_CODE)
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = cuda.libdevice.saturatef(S[n + i] * slope - offset) * MAX_CODE + ROUNDER
    return new_ref, alpha


@cuda.jit(device=True)
def pack(P, S):
    """Round P to e4m3: four per register, four registers per fragment of `wgmma`.

    Of 16 keys a thread has the scores of two neighbours in the first 8 and in the last 8. V has these four keys next to
    each other, so no thread needs elements of another one.
    """
    for n in range(P.shape[0]):
        first = n // 2 * 8 + n % 2 * 2
        P[n] = ptx.pack4(S[first], S[first + 1], S[first + 4], S[first + 5], FORMAT)


@cuda.jit(device=True)
def low_bytes(a, b):
    """Lowest bytes of two float32, next to each other."""
    return cuda.libdevice.byte_perm(cuda.libdevice.float_as_int(a), cuda.libdevice.float_as_int(b), 0x0040)


@cuda.jit(device=True)
def pack_codes(P, S):
    """Pack codes, four per register."""
    for n in range(P.shape[0]):
        first = n // 2 * 8 + n % 2 * 2
        low, high = low_bytes(S[first], S[first + 1]), low_bytes(S[first + 4], S[first + 5])
        P[n] = cuda.libdevice.byte_perm(low, high, 0x5410)


@cuda.jit(device=True)
def add_tile(O, PV, r, factor):
    """Rescale a row of O by `factor`, for a new ref_max and unit, and add P V of a tile."""
    for n in range(2 * r, O.shape[0], 4):
        O[n] = O[n] * factor + PV[n]
        O[n + 1] = O[n + 1] * factor + PV[n + 1]
