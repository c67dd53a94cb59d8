"""An image at a time: the matrix is N times smaller, and its product lies where it belongs.

The outputs of an image are a K x PQ matrix of their own, in order. So nothing has to be rearranged, and one image's
matrix may well stay in L2 between its two launches.

Costs:

    4 * CRS * PQ            bytes of workspace
    2 * N                   launches
    CRS * PQ                elements of an image written and read again

Limited by its launches: one image gives few tiles of 128 x 256, a single one for layer 4 of the cuDNN paper, so that
most of a GPU rests, and then waits for the next launch.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.views import matrix_of, reshaped, rows_of
from labkit.conv.sizes import sizes
from labkit.gemm import step
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

TAKES = {"result": ("y",), "groups": (1,), "layout": ("NCHW",)}
THREADS = 128
ROWS = 8  # of the matrix that a thread writes to


@cuda.jit
def image(pixels, matrix, of):
    pq = np.uint32(cuda.grid(1))
    p = fast_divide(pq, of.Q)
    top, left = np.uint32(p * of.stride_h - of.top), np.uint32((pq - p * of.Q.value) * of.stride_w - of.left)
    for i in range(ROWS):
        crs = np.uint32(cuda.blockIdx.y * ROWS + i)
        if crs < of.CRS and pq < of.PQ.value:
            c = fast_divide(crs, of.RS)
            rs = np.uint32(crs - c * of.RS.value)
            tap = np.uint32(of.turn * (of.RS.value - np.uint32(1 + rs + rs)) + rs)  # counted from the end, if turned
            r = fast_divide(tap, of.S)
            row = np.uint32(top + r * of.dilation_h)
            col = np.uint32(left + (tap - r * of.S.value) * of.dilation_w)
            inside = row < of.H and col < of.W
            matrix[crs, pq] = pixels[0, np.uint32((c * of.H + row) * of.W + col)] if inside else np.float32(0)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES)
    of = sizes(problem)
    N, K, CRS, PQ = problem.N, problem.K, int(of.CRS), int(of.PQ.value)
    matrix = workspace.array("matrix", (CRS, PQ), np.float32)
    images = reshaped(x, N, problem.C * problem.H * problem.W)
    filters, outputs = reshaped(w, K, CRS), reshaped(y, N, K, PQ)
    grid = -(-PQ // THREADS), -(-CRS // ROWS)
    made = []
    for n in range(N):
        made.append(Launch(image, grid, THREADS, (rows_of(images, n, 1), matrix, of)))
        made += step("fp32", "tuned").launches(filters, matrix, matrix_of(outputs, n))
    return made
