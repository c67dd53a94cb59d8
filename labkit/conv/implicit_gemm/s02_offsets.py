"""The offsets of a row's pixels are the same for all outputs: a first launch stores them in a table.

A pixel is at the corner of its window plus an offset, c * H * W + r * dilation_h * W + s * dilation_w, which depends
only on the row of the matrix. The table holds it, with the rows and columns from the corner to the tap, which decide
what is outside the image. One load of 16 bytes, the same for half a warp, replaces the divisions. Flipped filters and
groups only change the table and the corners.

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
from labkit.conv.sizes import make_sizes
from labkit.ladder import Launch

TILE = 16
THREADS = 256
BENCHED = batched(16, TABLE_2)  # timed sizes
SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs


@cuda.jit
def tabulate(table, conv):
    crs = np.uint32(cuda.grid(1))
    if crs < conv.CRS:
        c, rs = crs // conv.RS.value, np.uint32(crs % conv.RS.value)
        tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
        down, right = tap // conv.S.value * conv.dilation_h, tap % conv.S.value * conv.dilation_w
        ptx.store4(
            table, (crs, 0), np.uint32((c * conv.H + down) * conv.W + right), np.uint32(down), np.uint32(right), 0
        )


@cuda.jit
def offsets(x, w, y, table, conv):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    npq = np.uint32(cuda.blockIdx.x) * np.uint32(TILE) + np.uint32(cuda.threadIdx.x)
    k = np.uint32(cuda.blockIdx.y) * np.uint32(TILE) + np.uint32(cuda.threadIdx.y)
    group = np.uint32(cuda.blockIdx.z)
    tx, ty = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    n, pq = npq // conv.PQ.value, np.uint32(npq % conv.PQ.value)
    first_row = np.uint32(pq // conv.Q.value * conv.stride_h - conv.top)
    first_col = np.uint32(pq % conv.Q.value * conv.stride_w - conv.left)
    corner = np.uint32((group * conv.C * conv.H + first_row) * conv.W + first_col)

    zero = np.float32(0)
    acc = zero
    for start in range(0, conv.CRS, TILE):
        crs = np.uint32(start + tx)
        w_tile[ty, tx] = w[group * conv.K + k, crs] if k < conv.K and crs < conv.CRS else zero
        crs = np.uint32(start + ty)
        pixel = zero
        if n < conv.N and crs < conv.CRS:
            offset, tap_row, tap_col, _ = ptx.load4(table, (crs, 0))
            if np.uint32(first_row + tap_row) < conv.H and np.uint32(first_col + tap_col) < conv.W:
                pixel = x[n, np.uint32(corner + offset)]
        x_tile[ty, tx] = pixel
        cuda.syncthreads()
        for i in range(TILE):
            acc += w_tile[ty, i] * x_tile[i, tx]
        cuda.syncthreads()

    if k < conv.K and n < conv.N:
        y[n, group * conv.K + k, pq] = acc


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    conv = make_sizes(problem)
    CRS, PQ = int(conv.CRS), int(conv.PQ.value)
    table = workspace.array("table", (CRS, 4), np.uint32)
    images = reshape(x, problem.N, problem.C * problem.H * problem.W)
    filters, outputs = reshape(w, problem.K, CRS), reshape(y, problem.N, problem.K, PQ)
    grid = -(-int(conv.NPQ) // TILE), -(-int(conv.K) // TILE), problem.groups
    return [
        Launch(tabulate, -(-CRS // THREADS), THREADS, (table, conv)),
        Launch(offsets, grid, (TILE, TILE), (images, filters, outputs, table, conv)),
    ]
