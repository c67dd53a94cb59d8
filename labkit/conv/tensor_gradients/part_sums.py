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
LANES = 32
MAX_WARPS = 16
VECTOR = 4  # float32 of a thread
ROW = LANES * VECTOR  # of a warp
HALF, LOW = np.uint32(16), np.uint32(0xFFFF)  # bits per result, and the mask of the lower one in a word


@cuda.jit(early=True)
def add_parts(parts, w, channels):
    """w = the sums of the parts; a row of these has `channels`, and of w, if not WHOLE, the first ones.

    Each lane adds four neighbours. Warp i of a block adds the parts i, i + warps, ..., and the first warp their sums.
    """
    sums = cuda.shared.array((MAX_WARPS, ROW), np.float32, alignment=16)
    lane, warp, warps = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y), np.uint32(cuda.blockDim.y)
    first = np.uint32((np.uint32(cuda.blockIdx.x) * np.uint32(LANES) + lane) * np.uint32(VECTOR))
    a = b = c = d = np.float32(0)
    ptx.launch_wait()
    if first < parts.shape[1]:
        for part in range(warp, parts.shape[0], warps):
            e, f, g, h = ptx.load4(parts, (part, first))
            a, b, c, d = a + e, b + f, c + g, d + h
    ptx.store4(sums, (warp, lane * VECTOR), a, b, c, d)
    cuda.syncthreads()
    if warp == 0 and first < parts.shape[1]:
        for other in range(1, warps):
            e, f, g, h = ptx.load4(sums, (other, lane * VECTOR))
            a, b, c, d = a + e, b + f, c + g, d + h
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
    blocks = -(-rows * channels // ROW)
    arguments = reshape(parts, parts.shape[0], rows * channels), target, np.uint32(channels)
    return Launch(specialise_result(format, is_whole), blocks, (LANES, min(MAX_WARPS, parts.shape[0])), arguments)


@cache
def specialise_result(format: Format, is_whole: bool):
    """Return the kernel for a format, and for results with or without all channels of the parts."""
    return specialise(add_parts, RESULT=format.result.number, WHOLE=is_whole)
