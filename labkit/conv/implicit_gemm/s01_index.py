"""A tiled product whose right matrix does not exist: each of its elements is looked up in the images.

Its rows are the taps of a filter, counted over C, R and S, and its columns the outputs of a channel, counted over N, P
and Q. A thread has one column, and takes that number apart once; with each tile it comes to another row, takes that
apart into c, r and s, and so finds its pixel: row p * stride_h + r * dilation_h - top. What lies outside of the image
is zero. In 32 unsigned bits a row above the image is a very large one, so that one comparison tells both.

Costs, for K and NPQ that are multiples of TILE, and CRS too:

    2 * CRS / TILE          global loads per output
    2 * TILE * TILE * 4     bytes of shared memory per block
    2 * CRS / TILE          barriers per block
    0                       bytes of workspace

Limited by its divisions: a GPU has no instruction for one, and four of them, each some twenty instructions long, stand
beside TILE multiply-adds.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.sizes import sizes
from labkit.ladder import Launch

TILE = 16
BENCHED = batched(16, TABLE_2)
TAKES = {"result": ("y",), "groups": (1,), "layout": ("NCHW",), "flipped": (False,)}


@cuda.jit
def index(x, w, y, of):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    npq = np.uint32(cuda.blockIdx.x) * np.uint32(TILE) + np.uint32(cuda.threadIdx.x)
    k = np.uint32(cuda.blockIdx.y) * np.uint32(TILE) + np.uint32(cuda.threadIdx.y)
    across, down = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    n, pq = npq // of.PQ.value, npq % of.PQ.value
    p, q = pq // of.Q.value, pq % of.Q.value

    zero = np.float32(0)
    total = zero
    for start in range(0, of.CRS, TILE):
        crs = np.uint32(start + across)
        w_tile[down, across] = w[k, crs] if k < of.K and crs < of.CRS else zero
        crs = np.uint32(start + down)
        c, rs = crs // of.RS.value, np.uint32(crs % of.RS.value)
        r, s = rs // of.S.value, rs % of.S.value
        row = np.uint32(p * of.stride_h + r * of.dilation_h - of.top)
        col = np.uint32(q * of.stride_w + s * of.dilation_w - of.left)
        inside = n < of.N and c < of.C and row < of.H and col < of.W
        x_tile[down, across] = x[n, c, row, col] if inside else zero
        cuda.syncthreads()
        for i in range(TILE):
            total += w_tile[down, i] * x_tile[i, across]
        cuda.syncthreads()

    if k < of.K and n < of.N:
        y[n, k, p, q] = total


def launches(x, w, y, problem):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES)
    of = sizes(problem)
    grid = -(-int(of.NPQ) // TILE), -(-problem.K // TILE)
    return [Launch(index, grid, (TILE, TILE), (x, reshape(w, problem.K, int(of.CRS)), y, of))]
