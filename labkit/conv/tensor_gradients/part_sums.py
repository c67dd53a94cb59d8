"""Last launch of a split sum: it adds the parts in a fixed order and rounds the sums once, so equal calls are equal."""

from functools import cache
from math import prod

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_bits, as_words, reshape
from labkit.formats import Format
from labkit.ladder import Launch

RESULT = ptx.BF16
WHOLE = True  # w has all channels of the parts, whose number is then a multiple of 8
LANES, WARPS = 32, 8  # of a block
VECTOR = 4  # float32 of a thread
ROW = LANES * VECTOR  # of a warp
UNROLL = 4  # vectors that a thread loads at once
MIN_THREADS = 2**17  # that fill a GPU
TEAMS = (1, 2, 4, 8)  # warps of a team
HALF, LOW = np.uint32(16), np.uint32(0xFFFF)  # bits per result, and the mask of the lower one in a word


@cuda.jit(launch_bounds=(LANES * WARPS, 4), early=True)
def add_parts(parts, w, channels, teams):
    """w = the sums of the parts; a row of these has `channels`, and of w, if not WHOLE, the first ones.

    Each thread adds four neighbours. Warp i of a team adds the parts i, i + `teams`, ..., and the first one the sums of
    its team.
    """
    sums = cuda.shared.array((WARPS, ROW), np.float32, alignment=16)
    values = cuda.local.array((UNROLL, VECTOR), np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    member, row_of_block = warp % teams, warp // teams
    first = np.uint32(
        ((np.uint32(cuda.blockIdx.x) * (np.uint32(WARPS) // teams) + row_of_block) * LANES + lane) * VECTOR
    )
    exists = first < parts.shape[1]
    a = b = c = d = np.float32(0)
    ptx.launch_wait()
    for begin in range(member, parts.shape[0], teams * UNROLL):
        for i in range(UNROLL):
            part = begin + i * teams
            for j in range(VECTOR):
                values[i, j] = 0
            if exists and part < parts.shape[0]:
                values[i, 0], values[i, 1], values[i, 2], values[i, 3] = ptx.load4(parts, (part, first))
        for i in range(UNROLL):
            a, b, c, d = a + values[i, 0], b + values[i, 1], c + values[i, 2], d + values[i, 3]
    if teams > 1:
        ptx.store4(sums, (warp, lane * VECTOR), a, b, c, d)
        cuda.syncthreads()
        if member == 0:
            for other in range(1, teams):
                e, f, g, h = ptx.load4(sums, (warp + other, lane * VECTOR))
                a, b, c, d = a + e, b + f, c + g, d + h
    if member == 0 and exists:
        low, high = ptx.pack2(a, b, RESULT), ptx.pack2(c, d, RESULT)
        if WHOLE:
            ptx.store2(w, (0, first // np.uint32(2)), low, high)
        else:
            row = first // channels
            column = np.uint32(first - row * channels)
            store_if_inside(w, row, column, low & LOW)
            store_if_inside(w, row, np.uint32(column + 1), low >> HALF)
            store_if_inside(w, row, np.uint32(column + 2), high & LOW)
            store_if_inside(w, row, np.uint32(column + 3), high >> HALF)


@cuda.jit(device=True)
def store_if_inside(w, row, column, bits):
    """Store a result unless its channel is padding."""
    if column < w.shape[1]:
        w[row, column] = bits


def sum_parts(parts, w, channels: int, format: Format) -> Launch:
    """Return the launch of w, of rows of channels, = the sum of parts along their first axis, of rows of `channels`."""
    rows, is_whole = prod(w.shape[:-1]), w.shape[-1] == channels
    target = as_words(reshape(w, 1, rows * channels)) if is_whole else as_bits(reshape(w, rows, w.shape[-1]))
    vectors, num_parts = rows * channels // VECTOR, parts.shape[0]
    teams = next(n for n in TEAMS if vectors * n >= MIN_THREADS or n * UNROLL >= num_parts or n == WARPS)
    blocks = -(-vectors * teams // (LANES * WARPS))
    arguments = reshape(parts, num_parts, rows * channels), target, np.uint32(channels), np.uint32(teams)
    return Launch(specialise_result(format, is_whole), blocks, (LANES, WARPS), arguments)


@cache
def specialise_result(format: Format, is_whole: bool):
    """Return the kernel for a format, and for results with or without all channels of the parts."""
    return specialise(add_parts, RESULT=format.result.number, WHOLE=is_whole)
