"""Chunks of images within a memory limit, with batched products by labkit's GEMM (`labkit.gemm.interface`).

It multiplies the filters with a batch of matrices in one launch, so images run concurrently. Columns and
rows of the matrices are padded with zeros to whole 16-byte vectors, since GEMM would copy them otherwise. If the pixels
of an output plane are not whole vectors, the padded product is copied to y in the end.

Costs:

    WORKSPACE_BYTES                 bytes of workspace at most, unless the matrix of one image is larger
    CRS * NPQ                       elements written and read again

Limited by memory: writing and reading the matrix takes as long as R * S copies of the images.
"""

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import round_up_to_vectors
from labkit.arrays.views import reshape, select_matrix, slice_rows, transpose
from labkit.conv.sizes import make_sizes
from labkit.formats import FP32
from labkit.gemm.interface.arrange import arrange_operand
from labkit.gemm.interface.candidates import choose_candidate
from labkit.gemm.interface.launches import launches as gemm_launches
from labkit.ladder import Launch, TooLarge
from labkit.layouts.interface.strided import make_strided_copy
from labkit.parts.division import fast_divide

SUPPORTED = {"result": ("y",), "groups": (1,), "layout": ("NCHW",)}  # fields that it takes; y: outputs
QUICK_TO_SIMULATE = True  # its loops are short: calls without a GPU prefer it
WORKSPACE_BYTES = 2**30  # for a chunk of images
THREADS = 128
ROWS = 8  # of a matrix per thread


@cuda.jit
def library(images, matrices, conv):
    pq, n = np.uint32(cuda.grid(1)), np.uint32(cuda.blockIdx.z)
    p = fast_divide(pq, conv.Q)
    first_row = np.uint32(p * conv.stride_h - conv.top)
    first_col = np.uint32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
    for i in range(ROWS):
        crs = np.uint32(cuda.blockIdx.y * ROWS + i)
        if crs < matrices.shape[1] and pq < matrices.shape[2]:
            c = fast_divide(crs, conv.RS)
            rs = np.uint32(crs - c * conv.RS.value)
            tap = np.uint32(conv.flipped * (conv.RS.value - np.uint32(1 + rs + rs)) + rs)  # from the end, if flipped
            r = fast_divide(tap, conv.S)
            row = np.uint32(first_row + r * conv.dilation_h)
            col = np.uint32(first_col + (tap - r * conv.S.value) * conv.dilation_w)
            inside = crs < conv.CRS and pq < conv.PQ.value and row < conv.H and col < conv.W
            matrices[n, crs, pq] = images[n, np.uint32((c * conv.H + row) * conv.W + col)] if inside else np.float32(0)


def launches(x, w, y, problem, workspace, limit_bytes=None) -> list[Launch]:
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    conv = make_sizes(problem)
    N, K, CRS, PQ = problem.N, problem.K, int(conv.CRS), int(conv.PQ.value)
    padded_rows, padded_cols = round_up_to_vectors(CRS, FP32.dtype), round_up_to_vectors(PQ, FP32.dtype)
    max_bytes = WORKSPACE_BYTES if limit_bytes is None else min(limit_bytes, WORKSPACE_BYTES)
    image_bytes = 4 * padded_cols * (padded_rows + K * (padded_cols > PQ))
    if limit_bytes is not None and image_bytes > limit_bytes:
        raise TooLarge(f"one image needs {image_bytes:,} bytes of workspace, which is over the limit", "allow more")
    chunk = min(N, max(1, max_bytes // image_bytes))
    matrices = workspace.array("matrices", (chunk, padded_rows, padded_cols), np.float32)
    images, outputs = reshape(x, N, problem.C * problem.H * problem.W), reshape(y, N, K, PQ)
    sequence = []
    filters = arrange_operand(reshape(w, K, CRS), (K, padded_rows), "filters", workspace, sequence, allow_gaps=False)
    for n0 in range(0, N, chunk):
        result = slice_rows(outputs, n0, chunk)
        chunk_matrices = slice_rows(matrices, 0, result.shape[0])
        product = (
            result if padded_cols == PQ else workspace.array("outputs", (*result.shape[:2], padded_cols), np.float32)
        )
        grid = -(-padded_cols // THREADS), -(-padded_rows // ROWS), result.shape[0]
        sequence.append(Launch(library, grid, THREADS, (slice_rows(images, n0, chunk), chunk_matrices, conv)))
        B, C = transpose(chunk_matrices), product
        if result.shape[0] == 1:  # a single matrix, unlike a batch, may be multiplied in parts
            B, C = select_matrix(B, 0), select_matrix(product, 0)
        sequence += gemm_launches(choose_candidate(FP32, filters, B, C), FP32, filters, B, C, 1.0, 0.0, workspace)
        if product is not result:
            sequence.append(make_strided_copy(product, result))
    return sequence
