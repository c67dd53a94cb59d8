"""Results of a thread, stored as far as they lie in the outputs."""

from labkit import cuda

EVEN = True  # whether K is, so that an output is a row of words; else it is one of single elements


@cuda.jit(device=True)
def store_pair(y, row, k, pair):
    """Stores the results of filters k and k + 1, where they exist, to a row of outputs."""
    if EVEN:
        if row < y.shape[0] and k // 2 < y.shape[1]:
            y[row, k // 2] = pair
    else:
        if row < y.shape[0] and k < y.shape[1]:
            y[row, k] = pair & 0xFFFF
        if row < y.shape[0] and k + 1 < y.shape[1]:
            y[row, k + 1] = pair >> 16
