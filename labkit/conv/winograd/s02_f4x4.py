"""Tiles of 6 x 6 pixels with 4 x 4 outputs: a quarter of the multiplications, and fewer floats between the transforms.

A tile takes 36 products instead of 144, and its 36 pixels make 16 outputs: 2.25 floats of V per pixel, where
F(2x2, 3x3) has 4. The transforms cost more additions, and their coefficients, up to 8 and down to 1/24, more digits:
errors are some five times those of F(2x2, 3x3). (Lavin and Gray, 2015, section 4.3.)

Costs, where tiles fit:

    2.25                  multiply-adds per output and channel, in place of 9
    2.25 * (C + K) / K    floats per output, written to V and M and read again
    4                     floats of U per float of the filters

With B bytes per second from memory and F FLOP/s in products, a layer takes at least

    4 * N * P * Q * (C + 2.25 * C) / B                                                    for V
    max(2 * 2.25 * N * P * Q * C * K / F, 4 * 2.25 * N * P * Q * (C + K) / B)             for the products
    4 * N * P * Q * (K + 2.25 * K) / B                                                    for the outputs

Limited by the bytes of V and M if there are few channels or filters, since each loaded float serves that many
multiply-adds. From 128 channels on, the products take longer than both transforms.
"""

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.winograd.problem import SUPPORTED
from labkit.conv.winograd.tiles import make_launches, transform_filters
from labkit.conv.winograd.transforms import as_float32, transforms

OUT, TAPS = 4, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1  # rows and columns of a tile's pixels
A, _, B = map(as_float32, transforms(OUT, TAPS))
filter_kernel = specialise(transform_filters, OUT=OUT)


@cuda.jit
def f4x4(x, V, tiles_y, tiles_x, top, left):
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
        for i in range(TILE):
            for j in range(TILE):
                half[i, j] = 0
                for n in range(TILE):
                    if B[n, i] != 0:
                        half[i, j] += B[n, i] * d[n, j]
        for i in range(TILE):
            for j in range(TILE):
                value = np.float32(0)
                for n in range(TILE):
                    if B[n, j] != 0:
                        value += half[i, n] * B[n, j]
                V[i * TILE + j, c, t] = value


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
        for i in range(OUT):
            for j in range(TILE):
                half[i, j] = 0
                for n in range(TILE):
                    if A[n, i] != 0:
                        half[i, j] += A[n, i] * m[n, j]
        for i in range(OUT):
            for j in range(OUT):
                out[i, j] = 0
                for n in range(TILE):
                    if A[n, j] != 0:
                        out[i, j] += half[i, n] * A[n, j]
        for i in range(OUT):
            out_row = np.uint32(row + i)
            if out_row < rows and cols % OUT == 0:
                ptx.store4(y, (image, k, out_row, col), out[i, 0], out[i, 1], out[i, 2], out[i, 3])
            elif out_row < rows:
                for j in range(OUT):
                    if np.uint32(col + j) < cols:
                        y[image, k, out_row, np.uint32(col + j)] = out[i, j]


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    kernels = filter_kernel, f4x4, transform_products
    borders = {"top": problem.top, "left": problem.left}
    return make_launches(kernels, x, w, y, workspace, out=OUT, **borders, flipped=problem.flipped)
