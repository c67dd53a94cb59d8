"""Device functions of a warp on its piece of images, rows of 128 bytes in shared memory; and such rows for TMA.

A lane reads vectors of 16 bytes by `load_at` and `store_at` of `labkit.parts.vectors`: four float32, or eight bfloat16,
which are four words of two. TMA has swizzled the rows, which does not matter: the warp reads the whole piece.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import as_words, reshape
from labkit.parts.vectors import load_at, store_at

ELEMENT, WIDTH = np.float32, 4  # type in memory, uint32 for two bfloat16; elements of a vector
IS_FLOAT32 = ELEMENT is np.float32
LANES, VECTORS, WORDS = 32, 8, 4  # of a warp; vectors of a row; and words of a vector


def tma_rows(X, *shape):
    """View images in a shape for TMA: float32 as it is, bfloat16 as words of two elements."""
    X = reshape(X, *shape)
    return X if X.dtype == np.float32 else as_words(X)


@cuda.jit(device=True)
def piece_moments(tiles, piece, lane, rows):
    """Return count, mean in two floats, and sum of squared deviations, of the lane's share of a piece."""
    x_reg = cuda.local.array(WIDTH, np.float32)
    first = shifted_sum = shifted_squares = count = np.float32(0)
    for v in range(lane, rows * VECTORS, LANES):
        load_at(tiles, (piece, v // VECTORS, v % VECTORS * WORDS), x_reg)
        if IS_FLOAT32:
            a, b, c, d = x_reg[0], x_reg[1], x_reg[2], x_reg[3]
            # a mean of four is close to the other values, even if one of the four is not
            first = ((a + b) + (c + d)) / np.float32(4) if count == np.float32(0) else first
            count += np.float32(4)
            a, b, c, d = a - first, b - first, c - first, d - first
            shifted_sum += (a + b) + (c + d)
            shifted_squares += (a * a + b * b) + (c * c + d * d)
        else:
            for word in range(WORDS):
                a, b = x_reg[2 * word], x_reg[2 * word + 1]
                first = (a + b) / np.float32(2) if count == np.float32(0) else first
                count += np.float32(2)
                a, b = a - first, b - first
                shifted_sum += a + b
                shifted_squares += a * a + b * b
    mean_low = shifted_sum / max(count, np.float32(1))
    return count, first, mean_low, shifted_squares - shifted_sum * mean_low


@cuda.jit(device=True)
def normalise_piece(tiles, piece, lane, rows, centre, scale, shift, relu):
    """Replace each value of the lane's share by (value - centre) * scale + shift, followed by ReLU if `relu`."""
    x_reg = cuda.local.array(WIDTH, np.float32)
    for v in range(lane, rows * VECTORS, LANES):
        index = piece, v // VECTORS, v % VECTORS * WORDS
        load_at(tiles, index, x_reg)
        for e in range(WIDTH):
            x_reg[e] = normalise(x_reg[e], centre, scale, shift, relu)
        store_at(tiles, index, x_reg)


@cuda.jit(device=True)
def normalise(value, centre, scale, shift, relu):
    """Return (value - centre) * scale + shift, followed by ReLU if `relu`."""
    value = (value - centre) * scale + shift
    return np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
