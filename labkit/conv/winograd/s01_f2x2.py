"""Products of 4 x 4 transformed pixels in place of 3 x 3 taps for each of 2 x 2 outputs: 16 for 36.

Images are cut into tiles of 4 x 4 pixels, which overlap by two rows and columns; each has 2 x 2 outputs. A tile d
becomes V = B.T @ d @ B, a filter g becomes U = G @ g @ G.T, and U and V are multiplied element by element. The sum
over channels makes this one matrix product for each of the 16 elements: filters x channels times channels x tiles. Its
result M becomes the outputs A.T @ M @ A. (Lavin and Gray, 2015, section 4.1.)

The element of a tile is the first axis of U, V and M, and tiles are the last axis of V and M. Neighbouring threads
transform neighbouring tiles, and each matrix is stored as the product reads it. Coefficients are compile-time
constants: zeros leave no instruction. `winograd.tiles` has the transform of filters and the sequence of launches, which
are the same in the next steps; `winograd.products` has the product.

Costs, where tiles fit:

    4                     multiply-adds per output and channel, in place of 9
    4 * (C + K) / K       floats per output, written to V and M and read again
    16 / 9                floats of U per float of the filters

Limited by memory: V and M are four times as large as images and outputs.
"""

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.winograd.problem import SUPPORTED, Forward2x2
from labkit.conv.winograd.tiles import make_launches, transform_filters
from labkit.conv.winograd.transforms import as_float32, transforms

PROBLEM = Forward2x2
OUT, TAPS = 2, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1  # rows and columns of a tile's pixels
A, _, B = map(as_float32, transforms(OUT, TAPS))
filter_kernel = specialise(transform_filters, OUT=OUT)


@cuda.jit
def f2x2(x, V, tiles_y, tiles_x, top, left):
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
                ptx.store2(y, (image, k, out_row, col), out[i, 0], out[i, 1])
            elif out_row < rows:
                for j in range(OUT):
                    if np.uint32(col + j) < cols:
                        y[image, k, out_row, np.uint32(col + j)] = out[i, j]


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    kernels = filter_kernel, f2x2, transform_products
    borders = {"top": problem.top, "left": problem.left}
    return make_launches(kernels, x, w, y, workspace, out=OUT, **borders, flipped=problem.flipped)
