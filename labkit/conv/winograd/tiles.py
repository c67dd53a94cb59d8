"""Host and filter side of F(m x m, 3 x 3): the launches around a step's transforms, and the transform of filters."""

import numpy as np

from labkit import cuda
from labkit.conv.winograd.products import make_products
from labkit.conv.winograd.transforms import as_float32, transforms
from labkit.ladder import Launch

OUT, TAPS = 2, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1  # rows and columns of a tile's pixels
G = as_float32(transforms(OUT, TAPS).G)
THREADS = 128


@cuda.jit
def transform_filters(w, U, flipped):
    """U = G @ g @ G.T for each filter and channel, with the filter rotated by 180 degrees if `flipped`."""
    g = cuda.local.array((TAPS, TAPS), np.float32)
    half = cuda.local.array((TILE, TAPS), np.float32)
    c, k = cuda.grid(2)
    if c < U.shape[2]:
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
                U[i * TILE + j, k, c] = value


def make_launches(kernels, images, w, outputs, workspace, *, out: int, top: int, left: int, flipped) -> list[Launch]:
    """Return the launches of the transforms, of filters, images and products, with the products before the last.

    A tile has out x out outputs; `top` and `left` are the zeros around an image. `kernels` are the three transforms.
    """
    filter_kernel, pixel_kernel, output_kernel = kernels
    (N, C, *_), (_, K, rows, cols) = images.shape, outputs.shape
    tiles_y, tiles_x, size = -(-rows // out), -(-cols // out), (out + TAPS - 1) ** 2
    width = -(-N * tiles_y * tiles_x // 4) * 4  # for loads of four elements
    U = workspace.array("filters", (size, K, C), np.float32)
    V = workspace.array("images", (size, C, width), np.float32)
    M = workspace.array("products", (size, K, width), np.float32)
    filter_blocks, tile_blocks = -(-C // THREADS), -(-width // THREADS)
    return [
        Launch(filter_kernel, (filter_blocks, K), (THREADS, 1), (w, U, int(flipped))),
        Launch(pixel_kernel, (tile_blocks, C), THREADS, (images, V, tiles_y, tiles_x, top, left)),
        make_products(U, V, M),
        Launch(output_kernel, (tile_blocks, K), THREADS, (M, outputs, tiles_y, tiles_x)),
    ]
