"""One thread per output: it multiplies the taps of a filter with the pixels under them, and adds.

Of the seven loops, those over images n, filters k, rows p and columns q of the outputs became the grid. The loops over
channels c and taps r, s remain. Taps on the padding are skipped. `x` counts rows here: neighbouring threads of a warp
read the image a whole row apart, and each of them loads a sector of its own.

Costs of T = C / groups * R * S taps, for a stride of 1, no padding, whole blocks, and rows of whole sectors:

    2 * T                               global loads per output
    16 * (1 + S // 2 / S / 4) + 1       sectors per warp and tap: 16 of x, more where a pair lies in two, and 1 of w
    0                                   bytes of shared memory per block

Limited by look-ups in L1: at least 17 cache lines per warp and tap, one per cycle. `s02_coalesced` runs the warp along
rows.
"""

import numpy as np

from labkit import cuda
from labkit.conv.problem import Forward
from labkit.ladder import Launch

SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs
BLOCK = 16


@cuda.jit
def naive(x, w, y, stride_h, stride_w, top, left, dilation_h, dilation_w, groups, flipped):
    # unsigned, so that one comparison finds both sides: indices before the image wrap around to large numbers
    K, P, Q = np.uint32(y.shape[1]), y.shape[2], y.shape[3]
    C_group, R, S = np.uint32(w.shape[1]), np.uint32(w.shape[2]), np.uint32(w.shape[3])
    H, W = np.uint32(x.shape[2]), np.uint32(x.shape[3])
    plane = np.uint32(cuda.blockIdx.x)
    n, k = plane // K, plane % K
    p = cuda.blockIdx.y * BLOCK + cuda.threadIdx.x
    q = cuda.blockIdx.z * BLOCK + cuda.threadIdx.y
    c0 = k // (K // np.uint32(groups)) * C_group  # channel of this filter's group
    if p < P and q < Q:
        acc = np.float32(0)
        for c in range(C_group):
            for r in range(R):
                for s in range(S):
                    row = np.uint32(p * stride_h + r * dilation_h - top)
                    col = np.uint32(q * stride_w + s * dilation_w - left)
                    if row < H and col < W:
                        tap_row = np.uint32(R - 1 - r if flipped else r)
                        tap_col = np.uint32(S - 1 - s if flipped else s)
                        acc += x[n, c0 + c, row, col] * w[k, c, tap_row, tap_col]
        y[n, k, p, q] = acc


def geometry(problem: Forward):
    """Return grid and block: x of the grid counts images and filters, y and z rows and columns of outputs."""
    return (problem.N * problem.K, -(-problem.P // BLOCK), -(-problem.Q // BLOCK)), (BLOCK, BLOCK)


def launches(x, w, y, problem):
    """y = x * w, in NCHW."""
    problem.check(x, w, y, supported=SUPPORTED)
    strides, zeros = (problem.stride_h, problem.stride_w), (problem.top, problem.left)
    dilations = problem.dilation_h, problem.dilation_w
    arguments = (x, w, y, *strides, *zeros, *dilations, problem.groups, problem.flipped)
    return [Launch(naive, *geometry(problem), arguments)]
