"""As many images at a time as a limit of memory allows, and a product for each by what the GEMM library chooses.

The library multiplies the filters with a batch of matrices by one launch, so that no image waits for another. Matrices
get columns, and rows of zeros, to whole pieces of 16 bytes, since it would copy them otherwise; then outputs that are
no whole pieces are copied, too.

Costs:

    WORKSPACE_BYTES                 bytes of workspace at most, unless the matrix of one image is larger
    CRS * NPQ                       elements written and read again

Limited by memory still: writing and reading the matrix takes as long as R * S copies of the images.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import in_pieces
from labkit.arrays.views import matrix_of, reshaped, rows_of, turned
from labkit.conv.sizes import sizes
from labkit.formats import FP32
from labkit.gemm.interface.arrange import arrange_operand
from labkit.gemm.interface.candidates import choose_candidate
from labkit.gemm.interface.launches import launches as multiplied
from labkit.ladder import Launch
from labkit.layouts.interface.strided import rearrange
from labkit.parts.division import fast_divide

TAKES = {"result": ("y",), "groups": (1,), "layout": ("NCHW",)}
QUICK = True  # to simulate: its loops are short
WORKSPACE_BYTES = 2**30  # that a chunk of images may take
THREADS = 128
ROWS = 8  # of a matrix that a thread writes to


@cuda.jit
def library(images, matrices, of):
    pq, n = np.uint32(cuda.grid(1)), np.uint32(cuda.blockIdx.z)
    p = fast_divide(pq, of.Q)
    top, left = np.uint32(p * of.stride_h - of.top), np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)
    for i in range(ROWS):
        crs = np.uint32(cuda.blockIdx.y * ROWS + i)
        if crs < matrices.shape[1] and pq < matrices.shape[2]:
            c = fast_divide(crs, of.RS)
            rs = np.uint32(crs - c * of.RS.value)
            tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
            r = fast_divide(tap, of.S)
            row = np.uint32(top + r * of.dilation_h)
            col = np.uint32(left + (tap - r * of.S.value) * of.dilation_w)
            inside = crs < of.CRS and pq < of.PQ.value and row < of.H and col < of.W
            matrices[n, crs, pq] = images[n, np.uint32((c * of.H + row) * of.W + col)] if inside else np.float32(0)


def launches(x, w, y, problem, workspace, limit_bytes=None) -> list[Launch]:
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES)
    of = sizes(problem)
    N, K, CRS, PQ = problem.N, problem.K, int(of.CRS), int(of.PQ.value)
    rows, cols = in_pieces(CRS, FP32.dtype), in_pieces(PQ, FP32.dtype)
    most_bytes = WORKSPACE_BYTES if limit_bytes is None else min(limit_bytes, WORKSPACE_BYTES)
    chunk = min(N, max(1, most_bytes // (4 * cols * (rows + K * (cols > PQ)))))
    matrices = workspace.array("matrices", (chunk, rows, cols), np.float32)
    images, outputs = reshaped(x, N, problem.C * problem.H * problem.W), reshaped(y, N, K, PQ)
    made = []
    filters = arrange_operand(reshaped(w, K, CRS), (K, rows), "filters", workspace, made, allow_gaps=False)
    for first in range(0, N, chunk):
        result = rows_of(outputs, first, chunk)
        of_chunk = rows_of(matrices, 0, result.shape[0])
        product = result if cols == PQ else workspace.array("outputs", (*result.shape[:2], cols), np.float32)
        grid = -(-cols // THREADS), -(-rows // ROWS), result.shape[0]
        made.append(Launch(library, grid, THREADS, (rows_of(images, first, chunk), of_chunk, of)))
        right, goal = turned(of_chunk), product
        if result.shape[0] == 1:  # a matrix is no batch of one, and may be multiplied in parts
            right, goal = matrix_of(right, 0), matrix_of(product, 0)
        made += multiplied(
            choose_candidate(FP32, filters, right, goal), FP32, filters, right, goal, 1.0, 0.0, workspace
        )
        if product is not result:
            made.append(rearrange(product, result))
    return made
