"""What a warp does with its piece of some images, rows of 128 bytes in shared memory: it sums it, and scales it there.

A lane takes 16 bytes at a time: four float32, or eight bfloat16, of which memory holds the bits, two in a word. The
copy engine has swizzled the rows; that matters to nobody who takes all of a piece.
"""

import numpy as np

from labkit import cuda, ptx

FORMAT = ptx.BF16
LANES, VECTORS, WORDS = 32, 8, 4  # of a warp; of 16 bytes in a row; and words of such a vector


@cuda.jit(device=True)
def sums(tiles, piece, lane, rows):
    """Count, mean in two floats, and squares about the mean, of the lane's share of a piece of float32."""
    first = total = squares = count = np.float32(0)
    for v in range(lane, rows * VECTORS, LANES):
        a, b, c, d = ptx.load4(tiles, (piece, v // VECTORS, v % VECTORS * WORDS))
        first = ((a + b) + (c + d)) / np.float32(4) if count == np.float32(0) else first  # near, if one of them is not
        count += np.float32(4)
        a, b, c, d = a - first, b - first, c - first, d - first
        total += (a + b) + (c + d)
        squares += (a * a + b * b) + (c * c + d * d)
    rest = total / max(count, np.float32(1))
    return count, first, rest, squares - total * rest


@cuda.jit(device=True)
def rescale(tiles, piece, lane, rows, centre, scale, shift, relu):
    """Each value of the lane's share becomes (value - centre) * scale + shift, or zero where that is below it."""
    for v in range(lane, rows * VECTORS, LANES):
        place = piece, v // VECTORS, v % VECTORS * WORDS
        a, b, c, d = ptx.load4(tiles, place)
        a, b = scaled(a, centre, scale, shift, relu), scaled(b, centre, scale, shift, relu)
        c, d = scaled(c, centre, scale, shift, relu), scaled(d, centre, scale, shift, relu)
        ptx.store4(tiles, place, a, b, c, d)


@cuda.jit(device=True)
def scaled(value, centre, scale, shift, relu):
    value = (value - centre) * scale + shift
    return np.float32(0) if relu and value < np.float32(0) else value  # a NaN is not below zero


@cuda.jit(device=True)
def sums_of_bits(tiles, piece, lane, rows):
    """As `sums`, of a piece of bfloat16."""
    own = cuda.local.array(WORDS, np.uint32)
    first = total = squares = count = np.float32(0)
    for v in range(lane, rows * VECTORS, LANES):
        own[0], own[1], own[2], own[3] = ptx.load4(tiles, (piece, v // VECTORS, v % VECTORS * WORDS))
        for word in range(WORDS):
            a, b = ptx.unpack2(own[word], FORMAT)
            first = (a + b) / np.float32(2) if count == np.float32(0) else first
            count += np.float32(2)
            a, b = a - first, b - first
            total += a + b
            squares += a * a + b * b
    rest = total / max(count, np.float32(1))
    return count, first, rest, squares - total * rest


@cuda.jit(device=True)
def rescale_bits(tiles, piece, lane, rows, centre, scale, shift, relu):
    """As `rescale`, of a piece of bfloat16."""
    own = cuda.local.array(WORDS, np.uint32)
    for v in range(lane, rows * VECTORS, LANES):
        place = piece, v // VECTORS, v % VECTORS * WORDS
        own[0], own[1], own[2], own[3] = ptx.load4(tiles, place)
        for word in range(WORDS):
            a, b = ptx.unpack2(own[word], FORMAT)
            a, b = scaled(a, centre, scale, shift, relu), scaled(b, centre, scale, shift, relu)
            own[word] = ptx.pack2(a, b, FORMAT)
        ptx.store4(tiles, place, own[0], own[1], own[2], own[3])
