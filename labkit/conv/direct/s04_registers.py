"""Each thread computes 8 outputs of 8 filters in registers, and uses each pixel and each tap that it loads 8 times.

A block computes 16 x 16 outputs of 64 filters of a group. All filters share one tile of pixels, so an image is loaded
64 times less often. A warp has 8 filters; a lane has a column of 8 outputs, two rows apart. For each tap it loads that
tap of its 8 filters as two vectors, since they are contiguous in shared memory, and 8 pixels. That makes 64
multiply-adds for 10 loads.

Costs of T = C / groups * R * S taps, for a stride of 1, whole blocks, and a tile of ROWS x COLUMNS pixels:

    T * (ROWS * COLUMNS / (R * S) / FILTERS + 1) / BLOCK**2     global loads per output
    T * (1 / TK + 1 / TP / 4)                                   shared loads per output
    (ROWS * PITCH + R * S * TAP_PITCH) * 4                          bytes of shared memory per block
    2 * T / (R * S)                                             barriers per block
    TP + TK // 4 * 2                                            shared load wavefronts per warp and tap

Limited by work other than multiply-adds. No thread multiplies while tiles are loaded, and each tap computes the
addresses of its pixels anew. Outputs that are not whole blocks leave threads idle: a plane of 7 x 7 outputs occupies
49 of 256.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.problem import Forward
from labkit.ladder import Launch, TooLarge

SUPPORTED = {"result": ("y",), "layout": ("NCHW",)}  # fields that it takes; y: outputs
BLOCK = 16
MAX_BYTES = 227 * 1024  # of shared memory per block, on compute capability 9.0
FILTERS = 64  # of a block
WARPS, LANE_ROWS = 8, 2  # of a block; rows of outputs per warp
TP, TK = BLOCK // LANE_ROWS, FILTERS // WARPS  # outputs and filters of a thread
TAP_PITCH = FILTERS + 4  # floats from one tap to the next: neighbours are stored to different banks


@cuda.jit(launch_bounds=(32 * WARPS, 2))
def registers(x, w, y, stride_h, stride_w, top, left, dilation_h, dilation_w, groups, flipped, rows, columns, pitch):
    pixels = cuda.shared.array(0, np.float32, alignment=16)[: rows * pitch]
    taps = cuda.shared.array(0, np.float32, alignment=16)[rows * pitch :]
    acc = cuda.local.array((TP, TK), np.float32)
    tap = cuda.local.array(TK, np.float32)
    # unsigned, so that one comparison finds both sides: indices before the image wrap around to large numbers
    K_group, P, Q = np.uint32(y.shape[1]) // np.uint32(groups), y.shape[2], y.shape[3]
    C_group, R, S = np.uint32(w.shape[1]), np.uint32(w.shape[2]), np.uint32(w.shape[3])
    H, W = np.uint32(x.shape[2]), np.uint32(x.shape[3])
    k_blocks = (K_group + np.uint32(FILTERS - 1)) // np.uint32(FILTERS)  # per group
    plane, k0 = np.uint32(cuda.blockIdx.x) // k_blocks, np.uint32(cuda.blockIdx.x) % k_blocks * np.uint32(FILTERS)
    n, group = plane // np.uint32(groups), plane % np.uint32(groups)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    lane_x, lane_y = lane % BLOCK, lane // BLOCK
    first_row = cuda.blockIdx.z * BLOCK * stride_h - top
    first_col = cuda.blockIdx.y * BLOCK * stride_w - left
    # indices of shared memory have 64 bits, else the compiler truncates each of them in an extra instruction
    pixel_step = np.uint64(LANE_ROWS * stride_h * pitch)  # from one pixel of a thread to the next

    zero = np.float32(0)
    for i in range(TP):
        for j in range(TK):
            acc[i, j] = zero
    for c in range(C_group):
        for i in range(warp, rows, WARPS):
            for j in range(lane, columns, 32):
                row, col = np.uint32(first_row + i), np.uint32(first_col + j)
                pixels[i * pitch + j] = x[n, group * C_group + c, row, col] if row < H and col < W else zero
        for t in range(lane, np.uint32(R * S), 32):
            r, s = np.uint32(t // S), np.uint32(t % S)
            tap_offset = np.uint32((R * S - 1 - t if flipped else t) * TAP_PITCH)
            for k in range(warp, FILTERS, WARPS):
                taps[tap_offset + k] = w[group * K_group + k0 + k, c, r, s] if k0 + k < K_group else zero
        cuda.syncthreads()
        for r in range(R):
            for s in range(S):
                strip = np.uint64((r * S + s) * TAP_PITCH + warp * TK)
                for j in range(0, TK, 4):
                    tap[j], tap[j + 1], tap[j + 2], tap[j + 3] = ptx.load4(taps, strip + np.uint64(j))
                origin = np.uint64((lane_y * stride_h + r * dilation_h) * pitch + lane_x * stride_w + s * dilation_w)
                for i in range(TP):
                    pixel = pixels[origin + np.uint64(i) * pixel_step]
                    for j in range(TK):
                        acc[i, j] += pixel * tap[j]
        cuda.syncthreads()

    q = cuda.blockIdx.y * BLOCK + lane_x
    for i in range(TP):
        p = cuda.blockIdx.z * BLOCK + lane_y + i * LANE_ROWS
        for j in range(TK):
            k_out = k0 + warp * TK + j
            if p < P and q < Q and k_out < K_group:
                y[n, group * K_group + k_out, p, q] = acc[i, j]


def tile(problem: Forward) -> tuple[int, int, int]:
    """Return rows and columns of the pixels under a block's taps, and the pitch of a row in floats."""
    rows = (BLOCK - 1) * problem.stride_h + (problem.R - 1) * problem.dilation_h + 1
    columns = (BLOCK - 1) * problem.stride_w + (problem.S - 1) * problem.dilation_w + 1
    return rows, columns, (columns + 15) // 32 * 32 + 16


def geometry(problem: Forward):
    """Return grid and block: x of the grid counts images and blocks of filters, y and z columns and rows of outputs."""
    k_blocks = problem.groups * -(-problem.K // problem.groups // FILTERS)
    return (problem.N * k_blocks, -(-problem.Q // BLOCK), -(-problem.P // BLOCK)), (32, WARPS)


def launches(x, w, y, problem):
    """y = x * w, in NCHW."""
    problem.check(x, w, y, supported=SUPPORTED)
    strides, zeros = (problem.stride_h, problem.stride_w), (problem.top, problem.left)
    dilations = problem.dilation_h, problem.dilation_w
    rows, columns, pitch = tile(problem)
    shared_bytes = (rows * pitch + problem.R * problem.S * TAP_PITCH) * 4
    if shared_bytes > MAX_BYTES:
        why = f"pixels and taps of a block need {shared_bytes:,} bytes of shared memory, and there are {MAX_BYTES:,}"
        raise TooLarge(why, "choose another step, or less dilation")
    arguments = (x, w, y, *strides, *zeros, *dilations, problem.groups, problem.flipped, rows, columns, pitch)
    return [Launch(registers, *geometry(problem), arguments, shared_bytes)]
