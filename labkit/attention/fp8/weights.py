"""Weights in e4m3 from scores where `wgmma` left them: parts of two rows, 8 apart, of which four threads have each."""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.scores import NONE, shrink

FORMAT = ptx.E4M3
GREATEST = np.float32(8)  # weight of a row as an exponent of 2: below 448, and 2**-14 of it is no subnormal yet
STEEP = np.float32(2**-2)  # exponents of a score, which is below 2**25; float32 has halves of those below 2**23
LOWEST = np.float32(-(2**25))  # below all scores
EVEN = np.int32(-2)  # all bits but the last
EACH = np.float32(8)  # codes from one power of two to the next
ZERO = np.float32(56 - 0.4566)  # where the line has the exponent 0, so that weights are right in the mean
MOST = np.float32(126)  # the last code of a number
WHOLE = np.float32(2**23)  # a sum with it has no fraction, and its last bits count
SPAN = np.float32(2**-64)  # of the largest scale of values so far: no unit of O is less, lest O overflows
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def highest(S, r):
    """The highest score of a row."""
    high = NONE
    for n in range(2 * r, S.shape[0], 4):
        high = cuda.libdevice.fmaxf(high, cuda.libdevice.fmaxf(S[n], S[n + 1]))
    high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 1))
    return cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(ALL, high, 2))


@cuda.jit(device=True)
def tame(S, tops, factor):
    """Subtracts the highest score of each row where exponents may be so large that float32 has no fraction of them.

    A multiply-add that subtracts a rounded exponent from one that is not would be off by whole ones, so that the
    greatest weight of a row is zero, or endless. Leaves the exponents of what was subtracted, with an even last bit:
    where a step of them is 16, half a step less is the same and not a step less.
    """
    tops[0] = tops[1] = 0
    if factor > STEEP:
        for r in range(2):
            high = cuda.libdevice.fmaxf(highest(S, r), LOWEST)
            for n in range(2 * r, S.shape[0], 4):
                S[n] -= high
                S[n + 1] -= high
            top = cuda.libdevice.float_as_int(high * factor) & EVEN
            tops[r] = cuda.libdevice.int_as_float(top)


@cuda.jit(device=True)
def move(S, r, origin, top, factor):
    """Where the exponent that stands for a weight of 1 moves to with the scores of a row.

    Gives it, what to subtract from exponents, and by what all shrinks that was summed before. A factor makes exponents
    of 2 of scores.
    """
    moved = cuda.libdevice.fmaxf(origin, highest(S, r) * factor - GREATEST + top)
    base = np.float32(0) if moved == NONE else moved
    return moved, base - top, ptx.exp2(origin - base)


@cuda.jit(device=True)
def weigh(S, r, origin, total, top, factor):
    """Makes weights of the scores of a row.

    Gives the exponent that stands for a weight of 1, the sum of this thread's weights so far, before they are rounded,
    and by what all shrinks that was summed before.
    """
    moved, base, shrinks = move(S, r, origin, top, factor)
    total *= shrinks
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - base)
            total += S[n + i]
    return moved, total, shrinks


@cuda.jit(device=True)
def exponentiate(S, r, origin, top, factor):
    """As `weigh`, without the sum."""
    moved, base, shrinks = move(S, r, origin, top, factor)
    for n in range(2 * r, S.shape[0], 4):
        for i in range(2):
            S[n + i] = ptx.exp2(S[n + i] * factor - base)
    return moved, shrinks


@cuda.jit(device=True)
def encode(S, r, origin, top, factor):
    """As `exponentiate`, of codes: what stands in the lowest byte of each element afterwards."""
    moved, base, shrinks = move(S, r, origin, top, factor)
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
def in_unit(N, of_tile, unit):
    """Waits for the sums of a tile, whose unit is its scale, and makes such in O's unit of them, where that is larger.

    That is rare, and stands before the weights: a branch behind them makes the compiler move them behind it.
    """
    if of_tile < unit:
        ptx.wgmma_wait(0)
        for r in range(2):
            shrink(N, r, cuda.libdevice.fast_fdividef(of_tile, unit))


@cuda.jit(device=True)
def add(O, N, r, factor):
    """Adds the sums of a tile to what a thread has of a row of O, which changes its origin and unit by a factor."""
    for n in range(2 * r, O.shape[0], 4):
        O[n] = O[n] * factor + N[n]
        O[n + 1] = O[n + 1] * factor + N[n + 1]
