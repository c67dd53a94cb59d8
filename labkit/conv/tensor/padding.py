"""Channels are padded by zeros to whole pieces of 16 bytes, which is what a copy to shared memory moves at least."""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_bits, reshaped
from labkit.gemm.tensor.operands import as_words
from labkit.ladder import Launch

THREADS = 256
EACH = 8  # elements of a piece


@cuda.jit
def pad(X, out):
    """A thread writes a piece of 16 bytes, four words, of the 8 channels that it has."""
    values = cuda.local.array(EACH, np.uint32)
    begin = np.uint32(cuda.blockIdx.x) * np.uint32(THREADS) + np.uint32(cuda.threadIdx.x)
    pieces = np.uint32(out.shape[1] // 4)
    row, piece = begin // pieces, begin % pieces
    if row < np.uint32(X.shape[0]):
        for i in range(EACH):
            channel = np.uint32(piece * np.uint32(EACH) + np.uint32(i))
            values[i] = X[row, channel] if channel < np.uint32(X.shape[1]) else np.uint32(0)
        word = np.uint32(piece * np.uint32(4))
        first, second = values[0] | values[1] << 16, values[2] | values[3] << 16
        ptx.store4(out, (row, word), first, second, values[4] | values[5] << 16, values[6] | values[7] << 16)


def padded(X, channels: int, role: str, workspace, made: list[Launch]):
    """A copy of an array, in the workspace, with so many channels; the launch that makes it is added to `made`."""
    *rows, C = X.shape
    count = int(np.prod(rows))
    out = workspace.array(role, (*rows, channels), X.dtype)
    arguments = as_bits(reshaped(X, count, C)), as_words(reshaped(out, count, channels))
    made.append(Launch(pad, -(-count * channels // EACH // THREADS), THREADS, arguments))
    return out
