"""All images at once become one matrix, and one matmul by the fastest fp32 step computes all outputs.

Rows of the matrix are the taps of a filter, counted over C, R and S. Columns are the outputs of a channel, counted over
N, P and Q. A first launch copies each pixel to all elements that need it. The product has a row per filter, in which
images follow one another; the outputs keep the filters of an image together. So a third launch reorders them.

Costs:

    4 * (CRS * NPQ + K * NPQ)       bytes of workspace
    CRS * NPQ                       elements written and read again for the matrix
    K * NPQ                         elements written and read again for the product

Limited by memory: at a stride of 1 the matrix is R * S times as large as the images, 8.3 GB for layer 2 of the cuDNN
paper, and it crosses the bus twice.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import as_strided, reshape
from labkit.conv.sizes import make_sizes
from labkit.gemm import step
from labkit.ladder import Launch
from labkit.layouts.interface.strided import make_strided_copy
from labkit.parts.division import fast_divide

SUPPORTED = {"result": ("y",), "groups": (1,), "layout": ("NCHW",)}  # fields that it takes; y: outputs
THREADS = 128
ROWS = 8  # of the matrix per thread


@cuda.jit
def batch(images, matrix, conv):
    npq = np.uint32(cuda.grid(1))
    n = fast_divide(npq, conv.PQ)
    pq = np.uint32(npq - n * conv.PQ.value)
    p = fast_divide(pq, conv.Q)
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
    for i in range(ROWS):
        crs = np.uint32(cuda.blockIdx.y * ROWS + i)
        if crs < conv.CRS and npq < conv.NPQ:
            c = fast_divide(crs, conv.RS)
            rs = np.uint32(crs - c * conv.RS.value)
            tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
            r = fast_divide(tap, conv.S)
            row = np.uint32(first_row + r * conv.dilation_h)
            col = np.uint32(first_col + (tap - r * conv.S.value) * conv.dilation_w)
            inside = row < conv.H and col < conv.W
            matrix[crs, npq] = images[n, np.uint32((c * conv.H + row) * conv.W + col)] if inside else np.float32(0)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    conv = make_sizes(problem)
    N, K, CRS, PQ, NPQ = problem.N, problem.K, int(conv.CRS), int(conv.PQ.value), int(conv.NPQ)
    matrix = workspace.array("matrix", (CRS, NPQ), np.float32)
    product = workspace.array("product", (K, NPQ), np.float32)
    by_images = as_strided(product, (N, K, PQ), (4 * PQ, 4 * NPQ, 4))
    grid = -(-NPQ // THREADS), -(-CRS // ROWS)
    return [
        Launch(batch, grid, THREADS, (reshape(x, N, problem.C * problem.H * problem.W), matrix, conv)),
        *step("fp32", "tuned").launches(reshape(w, K, CRS), matrix, product),
        make_strided_copy(by_images, reshape(y, N, K, PQ)),
    ]
