"""What a warp does with its piece of some images, rows of 128 bytes in shared memory: it sums it, and scales it there.

A lane takes 16 bytes at a time, by `load_at` and `store_at` of `labkit.parts.vectors`: four float32, or eight bfloat16,
of which memory holds the bits, two in a word. TMA has swizzled the rows, which does not matter to a warp that takes all
of a piece.
"""

import numpy as np

from labkit import cuda
from labkit.parts.vectors import load_at, store_at

ELEMENT, WIDTH = np.float32, 4  # what memory holds, or words of two bfloat16; elements of 16 bytes
IS_FLOAT32 = ELEMENT is np.float32
LANES, VECTORS, WORDS = 32, 8, 4  # of a warp; of 16 bytes in a row; and words of such a vector


@cuda.jit(device=True)
def sums(tiles, piece, lane, rows):
    """Return count, mean in two floats, and squares about the mean, of the lane's share of a piece."""
    own = cuda.local.array(WIDTH, np.float32)
    first = total = squares = count = np.float32(0)
    for v in range(lane, rows * VECTORS, LANES):
        load_at(tiles, (piece, v // VECTORS, v % VECTORS * WORDS), own)
        if IS_FLOAT32:
            a, b, c, d = own[0], own[1], own[2], own[3]
            first = ((a + b) + (c + d)) / np.float32(4) if count == np.float32(0) else first  # near, if one is not
            count += np.float32(4)
            a, b, c, d = a - first, b - first, c - first, d - first
            total += (a + b) + (c + d)
            squares += (a * a + b * b) + (c * c + d * d)
        else:
            for word in range(WORDS):
                a, b = own[2 * word], own[2 * word + 1]
                first = (a + b) / np.float32(2) if count == np.float32(0) else first
                count += np.float32(2)
                a, b = a - first, b - first
                total += a + b
                squares += a * a + b * b
    rest = total / max(count, np.float32(1))
    return count, first, rest, squares - total * rest


@cuda.jit(device=True)
def rescale(tiles, piece, lane, rows, centre, scale, shift, relu):
    """Replace each value of the lane's share by (value - centre) * scale + shift, or by zero where that is less."""
    own = cuda.local.array(WIDTH, np.float32)
    for v in range(lane, rows * VECTORS, LANES):
        place = piece, v // VECTORS, v % VECTORS * WORDS
        load_at(tiles, place, own)
        for e in range(WIDTH):
            own[e] = scaled(own[e], centre, scale, shift, relu)
        store_at(tiles, place, own)


@cuda.jit(device=True)
def scaled(value, centre, scale, shift, relu):
    value = (value - centre) * scale + shift
    return np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero
