"""Padding with zeros: after the channels, to whole 16-byte vectors per pixel, and optionally around images."""

from math import prod

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_bits, as_words
from labkit.ladder import Launch

THREADS = 256
VECTOR_ELEMENTS = 8


@cuda.jit
def pad(X, out, top, left):
    """Copy X to `out`, whose pixel (top, left) is the first of X; a thread writes 8 channels, four words."""
    values = cuda.local.array(VECTOR_ELEMENTS, np.uint32)
    index = np.uint32(cuda.blockIdx.x) * np.uint32(THREADS) + np.uint32(cuda.threadIdx.x)
    rows, cols, vectors = np.uint32(out.shape[1]), np.uint32(out.shape[2]), np.uint32(out.shape[3] // 4)
    pixel, vector = index // vectors, index % vectors
    line, col = pixel // cols, pixel % cols
    n, row = line // rows, line % rows
    if n < np.uint32(out.shape[0]):
        x_row, x_col = np.uint32(row - np.uint32(top)), np.uint32(col - np.uint32(left))  # large where negative
        inside = x_row < np.uint32(X.shape[1]) and x_col < np.uint32(X.shape[2])
        for i in range(VECTOR_ELEMENTS):
            channel = np.uint32(vector * np.uint32(VECTOR_ELEMENTS) + np.uint32(i))
            values[i] = 0
            if inside and channel < np.uint32(X.shape[3]):
                values[i] = X[n, x_row, x_col, channel]
        first, second = values[0] | values[1] << 16, values[2] | values[3] << 16
        third, fourth = values[4] | values[5] << 16, values[6] | values[7] << 16
        ptx.store4(out, (n, row, col, np.uint32(vector * np.uint32(4))), first, second, third, fourth)


def copy_padded(X, shape: tuple[int, ...], corner: tuple[int, int], role: str, workspace, launches: list[Launch]):
    """Return a larger array of the workspace with a copy of images or filters, whose first pixel is at `corner`.

    The launch that copies is appended to `launches`.
    """
    out = workspace.array(role, shape, X.dtype)
    threads = prod(shape) // VECTOR_ELEMENTS
    launches.append(Launch(pad, -(-threads // THREADS), THREADS, (as_bits(X), as_words(out), *corner)))
    return out
