"""All images at once become one matrix, and one matrix product by the fastest fp32 step does the rest.

Rows of the matrix are the taps of a filter, counted over C, R and S, and columns the outputs of a channel, counted over
N, P and Q; a first launch copies each pixel to all places where it is needed. The product has a row for each filter, in
which images follow one another, whereas outputs are wanted with the filters of an image together: a third launch puts
them there.

Costs:

    4 * (CRS * NPQ + K * NPQ)       bytes of workspace
    CRS * NPQ                       elements written and read again for the matrix
    K * NPQ                         elements written and read again for the product

Limited by memory: the matrix is R * S times as large as the images at a stride of 1, 8.3 GB for layer 2 of the cuDNN
paper, and it crosses the bus twice.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshaped, viewed
from labkit.conv.sizes import sizes
from labkit.gemm import step
from labkit.ladder import Launch
from labkit.layouts.interface.strided import rearrange
from labkit.parts.division import fast_divide

TAKES = {"result": ("y",), "groups": (1,), "layout": ("NCHW",)}
THREADS = 128
ROWS = 8  # of the matrix that a thread writes to


@cuda.jit
def batch(images, matrix, of):
    npq = np.uint32(cuda.grid(1))
    n = fast_divide(npq, of.PQ)
    pq = np.uint32(npq - n * of.PQ.value)
    p = fast_divide(pq, of.Q)
    top, left = np.uint32(p * of.stride_h - of.top), np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)
    for i in range(ROWS):
        crs = np.uint32(cuda.blockIdx.y * ROWS + i)
        if crs < of.CRS and npq < of.NPQ:
            c = fast_divide(crs, of.RS)
            rs = np.uint32(crs - c * of.RS.value)
            tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
            r = fast_divide(tap, of.S)
            row = np.uint32(top + r * of.dilation_h)
            col = np.uint32(left + (tap - r * of.S.value) * of.dilation_w)
            inside = row < of.H and col < of.W
            matrix[crs, npq] = images[n, np.uint32((c * of.H + row) * of.W + col)] if inside else np.float32(0)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES)
    of = sizes(problem)
    N, K, CRS, PQ, NPQ = problem.N, problem.K, int(of.CRS), int(of.PQ.value), int(of.NPQ)
    matrix = workspace.array("matrix", (CRS, NPQ), np.float32)
    product = workspace.array("product", (K, NPQ), np.float32)
    by_images = viewed(product, (N, K, PQ), (4 * PQ, 4 * NPQ, 4))
    grid = -(-NPQ // THREADS), -(-CRS // ROWS)
    return [
        Launch(batch, grid, THREADS, (reshaped(x, N, problem.C * problem.H * problem.W), matrix, of)),
        *step("fp32", "tuned").launches(reshaped(w, K, CRS), matrix, product),
        rearrange(by_images, reshaped(y, N, K, PQ)),
    ]
