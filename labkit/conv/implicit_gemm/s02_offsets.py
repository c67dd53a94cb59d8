"""What taking a row's number apart gives is the same for all outputs: a first launch writes it down.

A pixel lies at the corner of its window and from there by an offset, c * H * W + r * dilation_h * W + s * dilation_w,
which depends on the row of the matrix alone. The table holds it, and beside it how far the tap is below and to the
right of the corner, to tell what is outside of the image. One load of 16 bytes, the same for half a warp, takes the
place of the divisions. A filter that is turned by half a turn, and groups, are only other tables and other corners.

Costs, for K and NPQ that are multiples of TILE, and CRS too:

    3 * CRS / TILE          global loads per output: of a filter, of a pixel, and of the table
    2 * TILE * TILE * 4     bytes of shared memory per block
    2 * CRS / TILE          barriers per block
    16 * CRS                bytes of workspace

Limited by shared memory, as the tiled product is: two loads for a multiply-add.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import reshape
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.sizes import sizes
from labkit.ladder import Launch

TILE = 16
THREADS = 256
BENCHED = batched(16, TABLE_2)
TAKES = {"result": ("y",), "layout": ("NCHW",)}


@cuda.jit
def tabulate(table, of):
    crs = np.uint32(cuda.grid(1))
    if crs < of.CRS:
        c, rs = crs // of.RS.value, np.uint32(crs % of.RS.value)
        tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
        down, across = tap // of.S.value * of.dilation_h, tap % of.S.value * of.dilation_w
        ptx.store4(table, (crs, 0), np.uint32((c * of.H + down) * of.W + across), np.uint32(down), np.uint32(across), 0)


@cuda.jit
def offsets(x, w, y, table, of):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    npq = np.uint32(cuda.blockIdx.x) * np.uint32(TILE) + np.uint32(cuda.threadIdx.x)
    k = np.uint32(cuda.blockIdx.y) * np.uint32(TILE) + np.uint32(cuda.threadIdx.y)
    group = np.uint32(cuda.blockIdx.z)
    across, down = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    n, pq = npq // of.PQ.value, np.uint32(npq % of.PQ.value)
    top = np.uint32(pq // of.Q.value * of.stride_h - of.top)
    left = np.uint32(pq % of.Q.value * of.stride_w - of.left)
    corner = np.uint32((group * of.C * of.H + top) * of.W + left)

    zero = np.float32(0)
    total = zero
    for start in range(0, of.CRS, TILE):
        crs = np.uint32(start + across)
        w_tile[down, across] = w[group * of.K + k, crs] if k < of.K and crs < of.CRS else zero
        crs = np.uint32(start + down)
        pixel = zero
        if n < of.N and crs < of.CRS:
            offset, below, beside, _ = ptx.load4(table, (crs, 0))
            if np.uint32(top + below) < of.H and np.uint32(left + beside) < of.W:
                pixel = x[n, np.uint32(corner + offset)]
        x_tile[down, across] = pixel
        cuda.syncthreads()
        for i in range(TILE):
            total += w_tile[down, i] * x_tile[i, across]
        cuda.syncthreads()

    if k < of.K and n < of.N:
        y[n, group * of.K + k, pq] = total


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES)
    of = sizes(problem)
    CRS, PQ = int(of.CRS), int(of.PQ.value)
    table = workspace.array("table", (CRS, 4), np.uint32)
    images = reshape(x, problem.N, problem.C * problem.H * problem.W)
    filters, outputs = reshape(w, problem.K, CRS), reshape(y, problem.N, problem.K, PQ)
    grid = -(-int(of.NPQ) // TILE), -(-int(of.K) // TILE), problem.groups
    return [
        Launch(tabulate, -(-CRS // THREADS), THREADS, (table, of)),
        Launch(offsets, grid, (TILE, TILE), (images, filters, outputs, table, of)),
    ]
