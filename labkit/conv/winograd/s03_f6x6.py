"""Tiles of 8 x 8 pixels with 6 x 6 outputs: 64 products for 324, if digits allow it.

Points 1/2 and -1/2 join 0, 1, -1, 2, -2 and infinity. There are 1.78 floats of V for a pixel, where F(4x4, 3x3) has
2.25, but tiles at the edge reach further beyond it, and errors are two to three times those of F(4x4, 3x3). Images of
14 x 14 pixels fit its tiles so badly that F(4x4, 3x3) multiplies less.

The compiler unrolls loops of a hundred and some iterations, but not of 512. So each call computes two rows of a
product, and is unrolled. In a loop that is not unrolled, the tile would be in local memory.

Costs, where tiles fit:

    1.78                  multiply-adds per output and channel, in place of 9
    1.78 * (C + K) / K    floats per output, written to V and M and read again
    7.1                   floats of U per float of the filters

Limited by the products from 128 channels on, whose last blocks leave SMs idle.
"""

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.winograd.problem import SUPPORTED, Forward6x6
from labkit.conv.winograd.tiles import make_launches, transform_filters
from labkit.conv.winograd.transforms import as_float32, transforms

PROBLEM = Forward6x6
OUT, TAPS = 6, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1  # rows and columns of a tile's pixels
A, _, B = map(as_float32, transforms(OUT, TAPS))
filter_kernel = specialise(transform_filters, OUT=OUT)
PAIR = 2  # rows per call


@cuda.jit(device=True)
def transform_rows(half, d, first):
    """Compute two rows of B.T @ d."""
    for i in range(first, first + PAIR):
        for j in range(TILE):
            half[i, j] = 0
            for n in range(TILE):
                if B[n, i] != 0:
                    half[i, j] += B[n, i] * d[n, j]


@cuda.jit(device=True)
def store_tile(V, c, t, half, first):
    """Store two rows of half @ B."""
    for i in range(first, first + PAIR):
        for j in range(TILE):
            value = np.float32(0)
            for n in range(TILE):
                if B[n, j] != 0:
                    value += half[i, n] * B[n, j]
            V[i * TILE + j, c, t] = value


@cuda.jit
def f6x6(x, V, tiles_y, tiles_x, top, left):
    """V = B.T @ d @ B for each tile d of a channel; pixels outside the image are zeros."""
    d = cuda.local.array((TILE, TILE), np.float32)
    half = cuda.local.array((TILE, TILE), np.float32)
    t, c = np.uint32(cuda.grid(1)), cuda.blockIdx.y
    images, rows, cols = np.uint32(x.shape[0]), np.uint32(x.shape[2]), np.uint32(x.shape[3])
    image, tile = np.uint32(t // np.uint32(tiles_y * tiles_x)), np.uint32(t % np.uint32(tiles_y * tiles_x))
    tile_y, tile_x = np.uint32(tile // np.uint32(tiles_x)), np.uint32(tile % np.uint32(tiles_x))
    first_row, first_col = np.uint64(tile_y * OUT - top), np.uint64(tile_x * OUT - left)  # large where negative
    if t < V.shape[2]:
        for i in range(TILE):
            for j in range(TILE):
                row, col = first_row + np.uint64(i), first_col + np.uint64(j)
                d[i, j] = 0
                if image < images and np.uint32(row) < rows and np.uint32(col) < cols:
                    d[i, j] = x[image, c, row, col]
        transform_rows(half, d, 0)
        transform_rows(half, d, 2)
        transform_rows(half, d, 4)
        transform_rows(half, d, 6)
        store_tile(V, c, t, half, 0)
        store_tile(V, c, t, half, 2)
        store_tile(V, c, t, half, 4)
        store_tile(V, c, t, half, 6)


@cuda.jit(device=True)
def products_of_rows(half, m, first):
    """Compute two rows of A.T @ m."""
    for i in range(first, first + PAIR):
        for j in range(TILE):
            half[i, j] = 0
            for n in range(TILE):
                if A[n, i] != 0:
                    half[i, j] += A[n, i] * m[n, j]


@cuda.jit(device=True)
def outputs_of_rows(out, half, first):
    """Compute two rows of half @ A."""
    for i in range(first, first + PAIR):
        for j in range(OUT):
            out[i, j] = 0
            for n in range(TILE):
                if A[n, j] != 0:
                    out[i, j] += half[i, n] * A[n, j]


@cuda.jit
def transform_products(M, y, tiles_y, tiles_x):
    """Y = A.T @ m @ A for each tile m of a filter's products, cropped to the outputs."""
    m = cuda.local.array((TILE, TILE), np.float32)
    half = cuda.local.array((OUT, TILE), np.float32)
    out = cuda.local.array((OUT, OUT), np.float32)
    t, k = np.uint32(cuda.grid(1)), cuda.blockIdx.y
    image, tile = np.uint32(t // np.uint32(tiles_y * tiles_x)), np.uint32(t % np.uint32(tiles_y * tiles_x))
    tile_y, tile_x = np.uint32(tile // np.uint32(tiles_x)), np.uint32(tile % np.uint32(tiles_x))
    row, col = np.uint32(tile_y * OUT), np.uint32(tile_x * OUT)
    images, rows, cols = np.uint32(y.shape[0]), np.uint32(y.shape[2]), np.uint32(y.shape[3])
    if image < images:
        for i in range(TILE):
            for j in range(TILE):
                m[i, j] = M[i * TILE + j, k, t]
        products_of_rows(half, m, 0)
        products_of_rows(half, m, 2)
        products_of_rows(half, m, 4)
        outputs_of_rows(out, half, 0)
        outputs_of_rows(out, half, 2)
        outputs_of_rows(out, half, 4)
        for i in range(OUT):
            out_row = np.uint32(row + i)
            if out_row < rows:
                for j in range(0, OUT, 2):
                    left, right = np.uint32(col + j), np.uint32(col + j + 1)
                    if right < cols and cols % 2 == 0:
                        ptx.store2(y, (image, k, out_row, left), out[i, j], out[i, j + 1])
                    else:
                        if left < cols:
                            y[image, k, out_row, left] = out[i, j]
                        if right < cols:
                            y[image, k, out_row, right] = out[i, j + 1]


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    kernels = filter_kernel, f6x6, transform_products
    borders = {"top": problem.top, "left": problem.left}
    return make_launches(kernels, x, w, y, workspace, out=OUT, **borders, flipped=problem.flipped)
