"""A block loads the pixels under all its taps into shared memory, where many taps use each of them.

A block computes 16 x 16 outputs. The tile of pixels under their taps is larger by a rim, the halo, since the filter
reaches over the edge. For each channel the block loads this tile and the filter's taps, and waits at a barrier. Every
thread adds its products, and the block waits again before the next load. The tile holds zeros outside the image, so no
tap needs a test. A flipped filter is rotated as it is loaded.

Rows of the tile begin half of the banks apart: the two rows of a warp are read at once.

Costs of T = C / groups * R * S taps, for a stride of 1, whole blocks, and a tile of ROWS x COLUMNS pixels:

    T * (ROWS * COLUMNS / (R * S) + 1) / BLOCK**2       global loads per output
    2 * T                                               shared loads per output
    (ROWS * PITCH + R * S) * 4                          bytes of shared memory per block
    2 * T / (R * S)                                     barriers per block
    0                                                   bank conflicts per block
    2                                                   shared load wavefronts per warp and tap

Limited by shared memory: every multiply-add takes two loads; `s04_registers` uses each loaded value more often.
"""

import numpy as np

from labkit import cuda
from labkit.conv.problem import Forward
from labkit.ladder import Launch, TooLarge

SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs
BLOCK = 16
MAX_BYTES = 227 * 1024  # of shared memory per block, on compute capability 9.0


@cuda.jit
def halo(x, w, y, stride_h, stride_w, top, left, dilation_h, dilation_w, groups, flipped, rows, columns, pitch):
    pixels = cuda.shared.array(0, np.float32)[: rows * pitch]
    taps = cuda.shared.array(0, np.float32)[rows * pitch :]
    # unsigned, so that one comparison finds both sides: indices before the image wrap around to large numbers
    K, P, Q = np.uint32(y.shape[1]), y.shape[2], y.shape[3]
    C_group, R, S = np.uint32(w.shape[1]), np.uint32(w.shape[2]), np.uint32(w.shape[3])
    H, W = np.uint32(x.shape[2]), np.uint32(x.shape[3])
    plane = np.uint32(cuda.blockIdx.x)
    n, k = plane // K, plane % K
    c0 = k // (K // np.uint32(groups)) * C_group  # channel of this filter's group
    thread_x, thread_y = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    q, p = cuda.blockIdx.y * BLOCK + thread_x, cuda.blockIdx.z * BLOCK + thread_y
    first_row = cuda.blockIdx.z * BLOCK * stride_h - top
    first_col = cuda.blockIdx.y * BLOCK * stride_w - left

    zero = np.float32(0)
    acc = zero
    for c in range(C_group):
        for i in range(thread_y, rows, BLOCK):
            for j in range(thread_x, columns, BLOCK):
                row, col = np.uint32(first_row + i), np.uint32(first_col + j)
                pixels[i * pitch + j] = x[n, c0 + c, row, col] if row < H and col < W else zero
        for r in range(thread_y, R, BLOCK):
            for s in range(thread_x, S, BLOCK):
                offset = (R - 1 - r) * S + S - 1 - s if flipped else r * S + s
                taps[offset] = w[k, c, r, s]
        cuda.syncthreads()
        for r in range(R):
            for s in range(S):
                offset = (thread_y * stride_h + r * dilation_h) * pitch + thread_x * stride_w + s * dilation_w
                acc += pixels[np.uint32(offset)] * taps[r * S + s]
        cuda.syncthreads()

    if p < P and q < Q:
        y[n, k, p, q] = acc


def tile(problem: Forward) -> tuple[int, int, int]:
    """Return rows and columns of the pixels under a block's taps, and the pitch of a row in floats."""
    rows = (BLOCK - 1) * problem.stride_h + (problem.R - 1) * problem.dilation_h + 1
    columns = (BLOCK - 1) * problem.stride_w + (problem.S - 1) * problem.dilation_w + 1
    return rows, columns, (columns + 15) // 32 * 32 + 16


def geometry(problem: Forward):
    """Return grid and block: x of the grid counts images and filters, y and z columns and rows of outputs."""
    return (problem.N * problem.K, -(-problem.Q // BLOCK), -(-problem.P // BLOCK)), (BLOCK, BLOCK)


def launches(x, w, y, problem):
    """y = x * w, in NCHW."""
    problem.check(x, w, y, supported=SUPPORTED)
    strides, zeros = (problem.stride_h, problem.stride_w), (problem.top, problem.left)
    dilations = problem.dilation_h, problem.dilation_w
    rows, columns, pitch = tile(problem)
    shared_bytes = (rows * pitch + problem.R * problem.S) * 4
    if shared_bytes > MAX_BYTES:
        why = f"pixels and taps of a block need {shared_bytes:,} bytes of shared memory, and there are {MAX_BYTES:,}"
        raise TooLarge(why, "choose another step, or less dilation")
    arguments = (x, w, y, *strides, *zeros, *dilations, problem.groups, problem.flipped, rows, columns, pitch)
    return [Launch(halo, *geometry(problem), arguments, shared_bytes)]
