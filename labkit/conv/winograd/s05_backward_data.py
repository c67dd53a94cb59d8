"""The gradient of the images is a convolution of the outputs' gradient with rotated filters.

A pixel's gradient sums over all outputs that used it, each times the tap that it met there. So the sum runs over
filters instead of channels, and filters are rotated by 180 degrees. The padding is what "full" has beyond this one's:
2 - top rows above and 2 - left columns on the left. Only the transform of filters differs from `s02_f4x4`, whose other
kernels run here. (Chetlur and others, cuDNN: Efficient Primitives for Deep Learning, 2014, section 2, for the
gradients.)

Costs and limits are those of F(4x4, 3x3), with C and K exchanged.
"""

import numpy as np

from labkit import cuda
from labkit.conv.winograd.problem import TAKES as FORWARD_TAKES
from labkit.conv.winograd.problem import BackwardData4x4
from labkit.conv.winograd.s02_f4x4 import f4x4, transform_products
from labkit.conv.winograd.tiles import make_launches
from labkit.conv.winograd.transforms import as_float32, transforms

PROBLEM = BackwardData4x4
TAKES = FORWARD_TAKES | {"result": ("x",)}
OUT, TAPS = 4, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1
G = as_float32(transforms(OUT, TAPS).G)
backward_data = f4x4


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


def launches(x, w, y, problem, workspace):
    """x = the gradient of the images, from the gradient y of the outputs and the filters w."""
    problem.check(x, w, y, takes=TAKES)
    kernels = transform_filters, backward_data, transform_products
    borders = {"top": TAPS - 1 - problem.top, "left": TAPS - 1 - problem.left}
    return make_launches(kernels, y, w, x, workspace, out=OUT, **borders, flipped=not problem.flipped)
