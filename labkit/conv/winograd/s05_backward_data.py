"""The gradient of the images is a convolution of the outputs' gradient with rotated filters.

A pixel's gradient sums over all outputs that used it, each times the tap that it met there. So the sum runs over
filters instead of channels, and filters are rotated by 180 degrees. The padding is that of a full convolution, 2, minus
this one's: 2 - top rows above and 2 - left columns on the left. `make_launches` runs the three transforms, and the
products M = U @ V, one per point of a tile, before the last. Only the transform of filters and the launches differ from
F(4x4, 3x3) forward. (Chetlur and others, cuDNN: Efficient Primitives for Deep Learning, 2014, section 2, for the
gradients.)

Costs and limits are those of F(4x4, 3x3), with C and K exchanged.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.winograd.problem import SUPPORTED as FORWARD_SUPPORTED
from labkit.conv.winograd.problem import BackwardData4x4
from labkit.conv.winograd.tiles import make_launches
from labkit.conv.winograd.transforms import as_float32, transforms

PROBLEM = BackwardData4x4
SUPPORTED = FORWARD_SUPPORTED | {"result": ("x",)}  # fields that it takes; x: gradient of images
OUT, TAPS = 4, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1  # rows and columns of a tile's pixels
A, G, B = map(as_float32, transforms(OUT, TAPS))


@cuda.jit
def transform_filters(w, U, flipped):
    """U = G @ g @ G.T for each filter and channel, with the filter rotated by 180 degrees if `flipped`."""
    g = cuda.local.array((TAPS, TAPS), np.float32)
    half = cuda.local.array((TILE, TAPS), np.float32)
    k, c = cuda.grid(2)
    if k < U.shape[2]:
        for i in range(TAPS):
            for j in range(TAPS):
                g[i, j] = w[k, c, TAPS - 1 - i, TAPS - 1 - j] if flipped else w[k, c, i, j]
        for i in range(TILE):
            for j in range(TAPS):
                half[i, j] = 0
                for n in range(TAPS):
                    if G[i, n] != 0:
                        half[i, j] += G[i, n] * g[n, j]
        for i in range(TILE):
            for j in range(TILE):
                value = np.float32(0)
                for n in range(TAPS):
                    if G[j, n] != 0:
                        value += half[i, n] * G[j, n]
                U[i * TILE + j, c, k] = value


@cuda.jit
def backward_data(y, V, tiles_y, tiles_x, top, left):
    """V = B.T @ d @ B for each tile d of a filter's gradient; pixels outside the image are zeros."""
    d = cuda.local.array((TILE, TILE), np.float32)
    half = cuda.local.array((TILE, TILE), np.float32)
    t, k = np.uint32(cuda.grid(1)), cuda.blockIdx.y
    images, rows, cols = np.uint32(y.shape[0]), np.uint32(y.shape[2]), np.uint32(y.shape[3])
    image, tile = np.uint32(t // np.uint32(tiles_y * tiles_x)), np.uint32(t % np.uint32(tiles_y * tiles_x))
    tile_y, tile_x = np.uint32(tile // np.uint32(tiles_x)), np.uint32(tile % np.uint32(tiles_x))
    first_row, first_col = np.uint64(tile_y * OUT - top), np.uint64(tile_x * OUT - left)  # large where negative
    if t < V.shape[2]:
        for i in range(TILE):
            for j in range(TILE):
                row, col = first_row + np.uint64(i), first_col + np.uint64(j)
                d[i, j] = 0
                if image < images and np.uint32(row) < rows and np.uint32(col) < cols:
                    d[i, j] = y[image, k, row, col]
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
                V[i * TILE + j, k, t] = value


@cuda.jit
def transform_products(M, x, tiles_y, tiles_x):
    """Y = A.T @ m @ A for each tile m of a channel's products, cropped to the images."""
    m = cuda.local.array((TILE, TILE), np.float32)
    half = cuda.local.array((OUT, TILE), np.float32)
    out = cuda.local.array((OUT, OUT), np.float32)
    t, c = np.uint32(cuda.grid(1)), cuda.blockIdx.y
    image, tile = np.uint32(t // np.uint32(tiles_y * tiles_x)), np.uint32(t % np.uint32(tiles_y * tiles_x))
    tile_y, tile_x = np.uint32(tile // np.uint32(tiles_x)), np.uint32(tile % np.uint32(tiles_x))
    row, col = np.uint32(tile_y * OUT), np.uint32(tile_x * OUT)
    images, rows, cols = np.uint32(x.shape[0]), np.uint32(x.shape[2]), np.uint32(x.shape[3])
    if image < images:
        for i in range(TILE):
            for j in range(TILE):
                m[i, j] = M[i * TILE + j, c, t]
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
                ptx.store4(x, (image, c, out_row, col), out[i, 0], out[i, 1], out[i, 2], out[i, 3])
            elif out_row < rows:
                for j in range(OUT):
                    if np.uint32(col + j) < cols:
                        x[image, c, out_row, np.uint32(col + j)] = out[i, j]


def launches(x, w, y, problem, workspace):
    """x = the gradient of the images, from the gradient y of the outputs and the filters w."""
    problem.check(x, w, y, supported=SUPPORTED)
    kernels = transform_filters, backward_data, transform_products
    borders = {"top": TAPS - 1 - problem.top, "left": TAPS - 1 - problem.left}
    return make_launches(kernels, y, w, x, workspace, out=OUT, **borders, flipped=not problem.flipped)
