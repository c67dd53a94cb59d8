"""Sums of a gradient of filters, over a block and, in a second launch, over all blocks.

Both add in a fixed order, so every run gives the same bits.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.depthwise.vectors import from_float32
from labkit.formats import Format
from labkit.ladder import Launch

LANES, ROWS = 32, 16  # of a block: elements, and threads that share the parts of one
ELEMENT, FORMAT = np.float32, ptx.BF16  # of the result; of 16-bit numbers
TAPS, CHANNELS = 9, 4  # of a filter; of a thread


@cuda.jit(device=True)
def add_over_block(acc, sums):
    """Add `acc[tap, channel]` of all threads of a lane, in pairs: thread 0 has the sums. All threads must call.

    `sums` is shared memory for the numbers of half of the threads.
    """
    lane, thread = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    lanes, count = np.uint32(cuda.blockDim.x), np.uint32(cuda.blockDim.y)
    stride = np.uint32((count + np.uint32(1)) // np.uint32(2) * lanes)
    while count > 1:
        half = np.uint32((count + np.uint32(1)) // np.uint32(2))
        if half <= thread < count:
            for tap in range(TAPS):
                for v in range(CHANNELS):
                    sums[np.uint32(tap * CHANNELS + v) * stride + (thread - half) * lanes + lane] = acc[tap, v]
        cuda.syncthreads()
        if thread + half < count:
            for tap in range(TAPS):
                for v in range(CHANNELS):
                    acc[tap, v] += sums[np.uint32(tap * CHANNELS + v) * stride + thread * lanes + lane]
        cuda.syncthreads()
        count = half


@cuda.jit
def add_parts(parts, out, channels):
    """out[channel, tap] = the sum of parts[part, tap, channel], in whose order blocks store neighbours at once."""
    sums = cuda.shared.array((ROWS, LANES), np.float32)
    lane, row = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    channel, tap = np.uint32(cuda.blockIdx.x * np.uint32(LANES) + lane), np.uint32(cuda.blockIdx.y)
    acc = np.float32(0)
    if channel < channels:
        for part in range(row, parts.shape[0], ROWS):
            acc += parts[part, tap, channel]
    sums[row, lane] = acc
    cuda.syncthreads()
    if row == 0 and channel < channels:
        for other in range(1, ROWS):
            acc += sums[other, lane]
        out[np.uint32(channel * np.uint32(cuda.gridDim.y) + tap)] = from_float32(acc)


def sum_parts(parts, out, format: Format) -> Launch:
    """Return the launch of out = the sum of `parts` along their first axis, in a format, with taps last."""
    _, taps, channels = parts.shape
    grid = -(-channels // LANES), taps
    return Launch(specialise_format(format), grid, (LANES, ROWS), (parts, out, np.uint32(channels)))


@cache
def specialise_format(format: Format):
    """Return the kernel for a format of the result."""
    element = np.float32 if format.itemsize == 4 else np.uint16
    return specialise(add_parts, ELEMENT=element, FORMAT=format.number)
