"""Stores of a thread's results, cropped to the outputs."""

from labkit import cuda

EVEN = True  # K is even, so rows of outputs are words; else they are single elements


@cuda.jit(device=True)
def store_pair(y, row, k, pair):
    """Store the results of filters k and k + 1, if they exist, to a row of outputs."""
    if EVEN:
        if row < y.shape[0] and k // 2 < y.shape[1]:
            y[row, k // 2] = pair
    else:
        if row < y.shape[0] and k < y.shape[1]:
            y[row, k] = pair & 0xFFFF
        if row < y.shape[0] and k + 1 < y.shape[1]:
            y[row, k + 1] = pair >> 16
