"""A tiled product whose right matrix is never stored: each of its elements is looked up in the images.

Its rows are the taps of a filter, counted over C, R and S. Its columns are the outputs of a channel, counted over N, P
and Q. A thread has one column, and splits that index into n, p and q once. With each tile it gets another row, splits
it into c, r and s, and computes its pixel: row p * stride_h + r * dilation_h - top. Pixels outside the image are zero.
In unsigned 32 bits a row above the image is a very large one, so one comparison covers both sides.

Costs, for K and NPQ that are multiples of TILE, and CRS too:

    2 * CRS / TILE          global loads per output
    2 * TILE * TILE * 4     bytes of shared memory per block
    2 * CRS / TILE          barriers per block
    0                       bytes of workspace

Limited by its divisions: a GPU has no instruction for one. Four of them, each some twenty instructions long, come with
TILE multiply-adds.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.sizes import make_sizes
from labkit.ladder import Launch

TILE = 16
BENCHED = batched(16, TABLE_2)  # timed sizes
SUPPORTED = {"result": ("y",), "groups": (1,), "layout": ("NCHW",), "flipped": (False,)}  # fields that it takes


@cuda.jit
def index(x, w, y, conv):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    npq = np.uint32(cuda.blockIdx.x) * np.uint32(TILE) + np.uint32(cuda.threadIdx.x)
    k = np.uint32(cuda.blockIdx.y) * np.uint32(TILE) + np.uint32(cuda.threadIdx.y)
    tx, ty = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    n, pq = npq // conv.PQ.value, npq % conv.PQ.value
    p, q = pq // conv.Q.value, pq % conv.Q.value

    zero = np.float32(0)
    acc = zero
    for start in range(0, conv.CRS, TILE):
        crs = np.uint32(start + tx)
        w_tile[ty, tx] = w[k, crs] if k < conv.K and crs < conv.CRS else zero
        crs = np.uint32(start + ty)
        c, rs = crs // conv.RS.value, np.uint32(crs % conv.RS.value)
        r, s = rs // conv.S.value, rs % conv.S.value
        row = np.uint32(p * conv.stride_h + r * conv.dilation_h - conv.top)
        col = np.uint32(q * conv.stride_w + s * conv.dilation_w - conv.left)
        inside = n < conv.N and c < conv.C and row < conv.H and col < conv.W
        x_tile[ty, tx] = x[n, c, row, col] if inside else zero
        cuda.syncthreads()
        for i in range(TILE):
            acc += w_tile[ty, i] * x_tile[i, tx]
        cuda.syncthreads()

    if k < conv.K and n < conv.N:
        y[n, k, p, q] = acc


def launches(x, w, y, problem):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    conv = make_sizes(problem)
    grid = -(-int(conv.NPQ) // TILE), -(-problem.K // TILE)
    return [Launch(index, grid, (TILE, TILE), (x, reshape(w, problem.K, int(conv.CRS)), y, conv))]
