"""The filters of a block's channels: from memory to shared memory once, and to the registers of each thread."""

import numpy as np

from labkit import cuda
from labkit.conv.depthwise.vectors import to_float32

TAPS, CHANNELS = 9, 4  # of a filter; of a thread


@cuda.jit(device=True)
def load_taps(w, taps, w_reg, lane0, channels, flipped):
    """Load the filters of a thread's channels as `w_reg[tap, channel]`, rotated if flipped. All threads must call.

    Neighbours in the filters are the taps of one channel, so threads that read their own channels from memory would
    read far apart. `taps` is shared memory for the filters of the block's channels, of which `lane0` is the first
    lane's.
    """
    lane, lanes = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
    threads = np.uint32(lanes * cuda.blockDim.y)
    begin = np.uint32(lane0 * np.uint32(CHANNELS * TAPS))
    count = np.uint32(min(lanes * np.uint32(CHANNELS * TAPS), channels * np.uint32(TAPS) - begin))
    i = np.uint32(np.uint32(cuda.threadIdx.y) * lanes + lane)
    while i < count:  # a range with such a step divides
        taps[i] = to_float32(w[np.uint32(begin + i)])
        i = np.uint32(i + threads)
    cuda.syncthreads()
    if np.uint32((lane0 + lane) * np.uint32(CHANNELS)) < channels:
        for v in range(CHANNELS):
            for tap in range(TAPS):
                turned = np.uint32(TAPS - 1 - tap if flipped else tap)
                w_reg[tap, v] = taps[np.uint32((lane * np.uint32(CHANNELS) + np.uint32(v)) * np.uint32(TAPS) + turned)]
