"""Weights in e4m3 from scores where `wgmma` left them: parts of two rows, 8 apart, of which four threads have each."""

import numpy as np

from labkit import cuda, ptx

FORMAT = ptx.E4M3
NONE = np.float32(-np.inf)  # the score of a key that is not seen
GREATEST = np.float32(8)  # weight of a row as an exponent of 2: below 448, and 2**-14 of it is no subnormal yet
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def weigh(S, r, origin, total, factor):
    """Makes weights of the scores of a row, of which a factor makes exponents of 2.

    Gives the exponent that stands for a weight of 1, the sum of this thread's weights so far, before they are rounded,
    and by what all shrinks that was summed before.
    """
    high = NONE
    for n in range(2 * r, S.shape[0], 4):
        high = cuda.libdevice.fmaxf(high, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 1))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 2))
    moved = cuda.libdevice.fmaxf(origin, high * factor - GREATEST)
    base = np.float32(0) if moved == NONE else moved
    shrinks = ptx.exp2(origin - base)
    total *= shrinks
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - base)
            total += S[n + i]
    return moved, total, shrinks


@cuda.jit(device=True)
def pack(P, S):
    """Rounds weights to e4m3; four lie in a register, and four of these are a fragment for `wgmma`.

    Of 16 keys a thread has scores for two neighbours of the first 8 and of the last 8, and V has these beside one
    another: no thread needs what another one has.
    """
    for n in range(P.shape[0]):
        first = n // 2 * 8 + n % 2 * 2
        P[n] = ptx.pack4(S[first], S[first + 1], S[first + 4], S[first + 5], FORMAT)
