"""One thread per output, and neighbouring threads compute neighbours in a row of outputs.

Only the order of the threads changes: `x` counts columns now, as in every later step. A warp is two rows of 16
outputs: the pixels under a tap are contiguous, and all threads use the same tap.

Costs of T = C / groups * R * S taps, for a stride of 1, no padding, whole blocks, and rows of whole sectors:

    2 * T                               global loads per output
    2 * (3 - (S + 7) // 8 / S) + 1      sectors per warp and tap: for a row 3, or 2 where it begins a sector, and 1 of w
    0                                   bytes of shared memory per block

Limited by the loads themselves: two per multiply-add, with the instructions that compute their addresses. Every pixel
is loaded R * S times for each filter; `s03_halo` lets a block share what it loads.
"""

import numpy as np

from labkit import cuda
from labkit.conv.problem import Forward
from labkit.ladder import Launch

SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs
BLOCK = 16


@cuda.jit
def coalesced(x, w, y, stride_h, stride_w, top, left, dilation_h, dilation_w, groups, flipped):
    # unsigned, so that one comparison finds both sides: indices before the image wrap around to large numbers
    K, P, Q = np.uint32(y.shape[1]), y.shape[2], y.shape[3]
    C_group, R, S = np.uint32(w.shape[1]), np.uint32(w.shape[2]), np.uint32(w.shape[3])
    H, W = np.uint32(x.shape[2]), np.uint32(x.shape[3])
    plane = np.uint32(cuda.blockIdx.x)
    n, k = plane // K, plane % K
    q = cuda.blockIdx.y * BLOCK + cuda.threadIdx.x
    p = cuda.blockIdx.z * BLOCK + cuda.threadIdx.y
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
    """Return grid and block: x of the grid counts images and filters, y and z columns and rows of outputs."""
    return (problem.N * problem.K, -(-problem.Q // BLOCK), -(-problem.P // BLOCK)), (BLOCK, BLOCK)


def launches(x, w, y, problem):
    """y = x * w, in NCHW."""
    problem.check(x, w, y, supported=SUPPORTED)
    strides, zeros = (problem.stride_h, problem.stride_w), (problem.top, problem.left)
    dilations = problem.dilation_h, problem.dilation_w
    arguments = (x, w, y, *strides, *zeros, *dilations, problem.groups, problem.flipped)
    return [Launch(coalesced, *geometry(problem), arguments)]
