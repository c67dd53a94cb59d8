"""No table and no division: a quotient by a known divisor is the upper half of a product.

R * S and S are constant for the whole convolution: the host computes a multiplier for each (`labkit.parts.division`).
The kernel splits a row's index by two multiplications and two shifts. That takes less time than a load from memory, and
needs no memory.

Costs, for K and NPQ that are multiples of TILE, and CRS too:

    2 * CRS / TILE          global loads per output
    2 * TILE * TILE * 4     bytes of shared memory per block
    2 * CRS / TILE          barriers per block
    0                       bytes of workspace

Limited by shared memory, as the tiled product is: two loads for a multiply-add.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.sizes import make_sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

TILE = 16
BENCHED = batched(16, TABLE_2)  # timed sizes
SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs


@cuda.jit
def magic(x, w, y, conv):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    npq = np.uint32(cuda.blockIdx.x) * np.uint32(TILE) + np.uint32(cuda.threadIdx.x)
    k = np.uint32(cuda.blockIdx.y) * np.uint32(TILE) + np.uint32(cuda.threadIdx.y)
    group = np.uint32(cuda.blockIdx.z)
    tx, ty = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    n = fast_divide(npq, conv.PQ)
    pq = np.uint32(npq - n * conv.PQ.value)
    p = fast_divide(pq, conv.Q)
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)

    zero = np.float32(0)
    acc = zero
    for start in range(0, conv.CRS, TILE):
        crs = np.uint32(start + tx)
        w_tile[ty, tx] = w[group * conv.K + k, crs] if k < conv.K and crs < conv.CRS else zero
        crs = np.uint32(start + ty)
        c = fast_divide(crs, conv.RS)
        rs = np.uint32(crs - c * conv.RS.value)
        tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
        r = fast_divide(tap, conv.S)
        row = np.uint32(first_row + r * conv.dilation_h)
        col = np.uint32(first_col + (tap - r * conv.S.value) * conv.dilation_w)
        inside = n < conv.N and crs < conv.CRS and row < conv.H and col < conv.W
        x_tile[ty, tx] = x[n, np.uint32(((group * conv.C + c) * conv.H + row) * conv.W + col)] if inside else zero
        cuda.syncthreads()
        for i in range(TILE):
            acc += w_tile[ty, i] * x_tile[i, tx]
        cuda.syncthreads()

    if k < conv.K and n < conv.N:
        y[n, group * conv.K + k, pq] = acc


def launches(x, w, y, problem):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    conv = make_sizes(problem)
    images = reshape(x, problem.N, problem.C * problem.H * problem.W)
    filters, outputs = reshape(w, problem.K, int(conv.CRS)), reshape(y, problem.N, problem.K, int(conv.PQ.value))
    grid = -(-int(conv.NPQ) // TILE), -(-int(conv.K) // TILE), problem.groups
    return [Launch(magic, grid, (TILE, TILE), (images, filters, outputs, conv))]
