"""Weights in e4m3 from scores where `wgmma` left them: parts of two rows, 8 apart, of which four threads have each."""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.scores import NONE

FORMAT = ptx.E4M3
GREATEST = np.float32(8)  # weight of a row as an exponent of 2: below 448, and 2**-14 of it is no subnormal yet
EACH = np.float32(8)  # codes from one power of two to the next
ZERO = np.float32(56 - 0.4566)  # where the line has the exponent 0, so that weights are right in the mean
MOST = np.float32(126)  # the last code of a number
WHOLE = np.float32(2**23)  # a sum with it has no fraction, and its last bits count
SPAN = np.float32(2**-64)  # of the largest scale of values so far: no unit of O is less, lest O overflows
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def move(S, r, origin, factor):
    """Where the exponent that stands for a weight of 1 moves to with the scores of a row.

    Gives it, what to subtract from exponents, and by what all shrinks that was summed before. A factor makes exponents
    of 2 of scores.
    """
    high = NONE
    for n in range(2 * r, S.shape[0], 4):
        high = cuda.libdevice.fmaxf(high, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 1))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 2))
    moved = cuda.libdevice.fmaxf(origin, high * factor - GREATEST)
    base = np.float32(0) if moved == NONE else moved
    return moved, base, ptx.exp2(origin - base)


@cuda.jit(device=True)
def weigh(S, r, origin, total, factor):
    """Makes weights of the scores of a row.

    Gives the exponent that stands for a weight of 1, the sum of this thread's weights so far, before they are rounded,
    and by what all shrinks that was summed before.
    """
    moved, base, shrinks = move(S, r, origin, factor)
    total *= shrinks
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - base)
            total += S[n + i]
    return moved, total, shrinks


@cuda.jit(device=True)
def exponentiate(S, r, origin, factor):
    """As `weigh`, without the sum."""
    moved, base, shrinks = move(S, r, origin, factor)
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - base)
    return moved, shrinks


@cuda.jit(device=True)
def encode(S, r, origin, factor):
    """As `exponentiate`, of codes: what stands in the lowest byte of each element afterwards."""
    moved, base, shrinks = move(S, r, origin, factor)
    slope, below = factor * (EACH / MOST), base * (EACH / MOST) - ZERO / MOST
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = cuda.libdevice.saturatef(S[n + i] * slope - below) * MOST + WHOLE
    return moved, shrinks


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
def lowest(a, b):
    """The lowest bytes of two float32, beside one another."""
    return cuda.libdevice.byte_perm(cuda.libdevice.float_as_int(a), cuda.libdevice.float_as_int(b), 0x0040)


@cuda.jit(device=True)
def gather(P, S):
    """As `pack`, of codes."""
    for n in range(P.shape[0]):
        first = n // 2 * 8 + n % 2 * 2
        low, high = lowest(S[first], S[first + 1]), lowest(S[first + 4], S[first + 5])
        P[n] = cuda.libdevice.byte_perm(low, high, 0x5410)


@cuda.jit(device=True)
def add(O, N, r, factor):
    """Adds the sums of a tile to what a thread has of a row of O, which changes its origin and unit by a factor."""
    for n in range(2 * r, O.shape[0], 4):
        O[n] = O[n] * factor + N[n]
        O[n + 1] = O[n + 1] * factor + N[n + 1]
