"""No table, and no division either: a quotient by a divisor that is known beforehand is the upper half of a product.

R * S and S stay the same for the whole convolution, so the host finds a multiplier for each (`labkit.parts.division`),
and the kernel takes the number of a row apart by two multiplications and two shifts. That is less than a load from
memory takes to arrive, and needs no memory.

Costs, for K and NPQ that are multiples of TILE, and CRS too:

    2 * CRS / TILE          global loads per output
    2 * TILE * TILE * 4     bytes of shared memory per block
    2 * CRS / TILE          barriers per block
    0                       bytes of workspace

Limited by shared memory, as the tiled product is: two loads for a multiply-add.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.sizes import sizes
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

TILE = 16
BENCHED = batched(16, TABLE_2)
TAKES = {"result": ("y",), "layout": ("NCHW",)}


@cuda.jit
def magic(x, w, y, of):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    npq = np.uint32(cuda.blockIdx.x) * np.uint32(TILE) + np.uint32(cuda.threadIdx.x)
    k = np.uint32(cuda.blockIdx.y) * np.uint32(TILE) + np.uint32(cuda.threadIdx.y)
    group = np.uint32(cuda.blockIdx.z)
    across, down = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    n = fast_divide(npq, of.PQ)
    pq = np.uint32(npq - n * of.PQ.value)
    p = fast_divide(pq, of.Q)
    top, left = np.uint32(p * of.stride_h - of.top), np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)

    zero = np.float32(0)
    total = zero
    for start in range(0, of.CRS, TILE):
        crs = np.uint32(start + across)
        w_tile[down, across] = w[group * of.K + k, crs] if k < of.K and crs < of.CRS else zero
        crs = np.uint32(start + down)
        c = fast_divide(crs, of.RS)
        rs = np.uint32(crs - c * of.RS.value)
        tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
        r = fast_divide(tap, of.S)
        row = np.uint32(top + r * of.dilation_h)
        col = np.uint32(left + (tap - r * of.S.value) * of.dilation_w)
        inside = n < of.N and crs < of.CRS and row < of.H and col < of.W
        x_tile[down, across] = x[n, np.uint32(((group * of.C + c) * of.H + row) * of.W + col)] if inside else zero
        cuda.syncthreads()
        for i in range(TILE):
            total += w_tile[down, i] * x_tile[i, across]
        cuda.syncthreads()

    if k < of.K and n < of.N:
        y[n, group * of.K + k, pq] = total


def launches(x, w, y, problem):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES)
    of = sizes(problem)
    images = reshaped(x, problem.N, problem.C * problem.H * problem.W)
    filters, outputs = reshaped(w, problem.K, int(of.CRS)), reshaped(y, problem.N, problem.K, int(of.PQ.value))
    grid = -(-int(of.NPQ) // TILE), -(-int(of.K) // TILE), problem.groups
    return [Launch(magic, grid, (TILE, TILE), (images, filters, outputs, of))]
