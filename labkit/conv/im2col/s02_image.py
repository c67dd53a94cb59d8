"""One image at a time: the matrix is N times smaller, and its product goes directly to the outputs.

The outputs of an image are a K x PQ matrix in C order. So nothing needs reordering, and one image's matrix may stay in
L2 between its two launches.

Costs:

    4 * CRS * PQ            bytes of workspace
    2 * N                   launches
    CRS * PQ                elements of an image written and read again

Limited by its launches: one image has few tiles of 128 x 256, a single one for layer 4 of the cuDNN paper. So most of
the GPU idles, and then waits for the next launch.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape, select_matrix, slice_rows
from labkit.conv.sizes import make_sizes
from labkit.gemm import step
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

SUPPORTED = {"result": ("y",), "groups": (1,), "layout": ("NCHW",)}  # fields that it takes; y: outputs
THREADS = 128
ROWS = 8  # of the matrix per thread


@cuda.jit
def image(pixels, matrix, conv):
    pq = np.uint32(cuda.grid(1))
    p = fast_divide(pq, conv.Q)
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
    for i in range(ROWS):
        crs = np.uint32(cuda.blockIdx.y * ROWS + i)
        if crs < conv.CRS and pq < conv.PQ.value:
            c = fast_divide(crs, conv.RS)
            rs = np.uint32(crs - c * conv.RS.value)
            tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
            r = fast_divide(tap, conv.S)
            row = np.uint32(first_row + r * conv.dilation_h)
            col = np.uint32(first_col + (tap - r * conv.S.value) * conv.dilation_w)
            inside = row < conv.H and col < conv.W
            matrix[crs, pq] = pixels[0, np.uint32((c * conv.H + row) * conv.W + col)] if inside else np.float32(0)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    conv = make_sizes(problem)
    N, K, CRS, PQ = problem.N, problem.K, int(conv.CRS), int(conv.PQ.value)
    matrix = workspace.array("matrix", (CRS, PQ), np.float32)
    images = reshape(x, N, problem.C * problem.H * problem.W)
    filters, outputs = reshape(w, K, CRS), reshape(y, N, K, PQ)
    grid = -(-PQ // THREADS), -(-CRS // ROWS)
    sequence = []
    for n in range(N):
        sequence.append(Launch(image, grid, THREADS, (slice_rows(images, n, 1), matrix, conv)))
        sequence += step("fp32", "tuned").launches(filters, matrix, select_matrix(outputs, n))
    return sequence
