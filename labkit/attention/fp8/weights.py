"""Weights in e4m3 from scores where `wgmma` left them: parts of two rows, 8 apart, of which four threads have each."""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.scores import MASKED

FORMAT = ptx.E4M3
MAX_EXPONENT = np.float32(8)  # weight of a row as an exponent of 2: below 448, and 2**-14 of it is no subnormal yet
PER_POWER = np.float32(8)  # codes from one power of two to the next
CODE_OF_ONE = np.float32(56 - 0.4566)  # where the line has the exponent 0, so that weights are right in the mean
MAX_CODE = np.float32(126)  # the last code of a number
ROUNDER = np.float32(2**23)  # a sum with it has no fraction, and its last bits count
SPAN = np.float32(2**-64)  # of the largest scale of values so far: no unit of O is less, lest O overflows
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def update_ref_max(S, r, ref_max, factor):
    """Where the exponent that stands for a weight of 1 moves to with the scores of a row.

    Gives it, what to subtract from exponents, and by what all shrinks that was summed before. A factor makes exponents
    of 2 of scores.
    """
    tile_max = MASKED
    for n in range(2 * r, S.shape[0], 4):
        tile_max = cuda.libdevice.fmaxf(tile_max, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    tile_max = cuda.libdevice.fmaxf(tile_max, cuda.shfl_xor_sync(ALL, tile_max, 1))
    tile_max = cuda.libdevice.fmaxf(tile_max, cuda.shfl_xor_sync(ALL, tile_max, 2))
    new_ref = cuda.libdevice.fmaxf(ref_max, tile_max * factor - MAX_EXPONENT)
    safe_ref = np.float32(0) if new_ref == MASKED else new_ref
    return new_ref, safe_ref, ptx.exp2(ref_max - safe_ref)


@cuda.jit(device=True)
def exp_tile(S, r, ref_max, row_sum, factor):
    """Makes weights of the scores of a row.

    Gives the exponent that stands for a weight of 1, the sum of this thread's weights so far, before they are rounded,
    and by what all shrinks that was summed before.
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
    """As `weigh`, without the sum."""
    new_ref, safe_ref, alpha = update_ref_max(S, r, ref_max, factor)
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - safe_ref)
    return new_ref, alpha


@cuda.jit(device=True)
def encode_tile(S, r, ref_max, factor):
    """As `exponentiate`, of codes: what stands in the lowest byte of each element afterwards."""
    new_ref, safe_ref, alpha = update_ref_max(S, r, ref_max, factor)
    slope, offset = (factor * (PER_POWER / MAX_CODE), safe_ref * (PER_POWER / MAX_CODE) - CODE_OF_ONE / MAX_CODE)
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = cuda.libdevice.saturatef(S[n + i] * slope - offset) * MAX_CODE + ROUNDER
    return new_ref, alpha


@cuda.jit(device=True)
def pack(P, S):
    """Rounds weights to e4m3; four lie in a register, and four of these are a fragment for `wgmma`.

    Of 16 keys a thread has scores for two neighbours of the first 8 and of the last 8, and V has these beside one
    another: no thread needs what another one has.
    """
    for n in range(P.shape[0]):
        first = n // 2 * 8 + n % 2 * 2
        P[n] = ptx.pack4(S[first], S[first + 1], S[first + 4], S[first + 5], FORMAT)


@cuda.jit(device=True)
def low_bytes(a, b):
    """The lowest bytes of two float32, beside one another."""
    return cuda.libdevice.byte_perm(cuda.libdevice.float_as_int(a), cuda.libdevice.float_as_int(b), 0x0040)


@cuda.jit(device=True)
def pack_codes(P, S):
    """As `pack`, of codes."""
    for n in range(P.shape[0]):
        first = n // 2 * 8 + n % 2 * 2
        low, high = low_bytes(S[first], S[first + 1]), low_bytes(S[first + 4], S[first + 5])
        P[n] = cuda.libdevice.byte_perm(low, high, 0x5410)


@cuda.jit(device=True)
def add_tile(O, PV, r, factor):
    """Adds the sums of a tile to what a thread has of a row of O, which changes its origin and unit by a factor."""
    for n in range(2 * r, O.shape[0], 4):
        O[n] = O[n] * factor + PV[n]
        O[n + 1] = O[n + 1] * factor + PV[n + 1]
