"""Three kernels: S = Q K^T is stored, softmax makes P of each row of S, and O = P V reads it.

This is the formula, read literally. S is float32, with queries x keys scores per head.

Costs per head, if queries and keys are multiples of the tile and none is masked:

    4 * queries * keys              bytes of workspace
    2 * 4 * queries * keys          bytes of scores written
    4 * 4 * queries * keys          bytes of scores read, where O has 64 columns

Limited by S: at 16,384 queries and keys it takes 1 GB per head. `s02_kv_outer` never stores it.
"""

from math import exp, inf, log

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.attention.blocks import block_index, kernel_and_grid
from labkit.attention.operands import as_matrices, size_arguments
from labkit.formats import FP32
from labkit.ladder import Launch

FORMATS = (FP32,)
TILE = 64  # queries and keys of a block; queries and columns of O
DEPTH = 32  # of k, loaded at a time
PADDED = DEPTH + 1  # a row of a tile in shared memory: neighbours in a column are in different banks
PER_THREAD = 4  # rows, and columns
SIDE = TILE // PER_THREAD  # threads along a side of a block
WARP, WARPS = 32, 8


@cuda.jit(launch_bounds=(SIDE * SIDE, 2))
def standard(Q, K, S, strides, heads, heads_per_kv, window, scale):
    """Compute S = scale Q K^T by tiles; masked scores of a tile that is partly seen are minus infinity."""
    Q_tile = cuda.shared.array((TILE, PADDED), np.float32)
    K_tile = cuda.shared.array((TILE, PADDED), np.float32)
    acc = cuda.local.array((PER_THREAD, PER_THREAD), np.float32)
    num_queries, num_keys = np.int32(S.shape[1]), np.int32(S.shape[2])
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row, plane = block_index(-(-num_keys // TILE), -(-num_queries // TILE))
    k0, q0 = np.int32(column * TILE), np.int32(row * TILE)
    batch, head = plane // heads, plane % heads
    q_row = batch * strides[0][0] + head * strides[0][1]
    k_row = batch * strides[1][0] + head // heads_per_kv * strides[1][1]
    lowest, highest = window  # of j - i: query i sees the keys j between them
    if k0 <= q0 + TILE - 1 + highest and k0 + TILE - 1 >= q0 + lowest:
        for i in range(PER_THREAD):
            for j in range(PER_THREAD):
                acc[i, j] = 0
        for d in range(0, Q.shape[1], DEPTH):
            for n in range(y * SIDE + x, TILE * DEPTH, SIDE * SIDE):
                row, col = n // DEPTH, n % DEPTH
                q = k = np.float32(0)
                if d + col < Q.shape[1]:
                    if q0 + row < num_queries:
                        q = Q[q_row + (q0 + row) * strides[0][2], d + col]
                    if k0 + row < num_keys:
                        k = K[k_row + (k0 + row) * strides[1][2], d + col]
                Q_tile[row, col], K_tile[row, col] = q, k
            cuda.syncthreads()
            for col in range(DEPTH):
                for i in range(PER_THREAD):
                    for j in range(PER_THREAD):
                        acc[i, j] += Q_tile[i * SIDE + y, col] * K_tile[j * SIDE + x, col]
            cuda.syncthreads()
        for i in range(PER_THREAD):
            for j in range(PER_THREAD):
                row, col = q0 + i * SIDE + y, k0 + j * SIDE + x
                if row < num_queries and col < num_keys:
                    is_visible = row + lowest <= col and col <= row + highest
                    S[plane, row, col] = acc[i, j] * scale if is_visible else np.float32(-inf)


@cuda.jit(launch_bounds=WARP * WARPS)
def softmax_rows(S, lse, window):
    """Replace each row of S by exp(S - maximum) / sum; a warp has a row, and reads it three times."""
    lane, num_queries, num_keys = cuda.threadIdx.x % WARP, S.shape[1], S.shape[2]
    row_group, plane, _ = block_index(-(-num_queries // WARPS), S.shape[0])
    row = row_group * WARPS + cuda.threadIdx.x // WARP
    lowest, highest = window  # of j - i: query i sees the keys j between them
    if row < num_queries:
        q0 = row // TILE * TILE  # what the first kernel wrote of this row
        first = max(0, (q0 + lowest) // TILE * TILE)
        end = min(num_keys, ((min(q0 + TILE, num_queries) - 1 + highest) // TILE + 1) * TILE)
        row_max, row_sum = np.float32(-inf), np.float32(0)
        for i in range(first + lane, end, WARP):
            row_max = max(row_max, S[plane, row, i])
        for n in range(5):
            row_max = max(row_max, cuda.shfl_xor_sync(0xFFFFFFFF, row_max, 1 << n))
        safe_max = np.float32(0) if row_max == np.float32(-inf) else row_max
        for i in range(first + lane, end, WARP):
            row_sum += exp(S[plane, row, i] - safe_max)
        for n in range(5):
            row_sum += cuda.shfl_xor_sync(0xFFFFFFFF, row_sum, 1 << n)
        recip = np.float32(0) if row_sum == np.float32(0) else np.float32(1) / row_sum
        for i in range(first + lane, end, WARP):
            S[plane, row, i] = exp(S[plane, row, i] - safe_max) * recip
        if lane == 0:
            lse[plane, row] = np.float32(-inf) if row_sum == np.float32(0) else safe_max + log(row_sum)


@cuda.jit(launch_bounds=(SIDE * SIDE, 2))
def multiply_by_v(S, V, O, strides, heads, heads_per_kv, window):
    """Compute O = S V by tiles."""
    S_tile = cuda.shared.array((TILE, PADDED), np.float32)
    V_tile = cuda.shared.array((DEPTH, TILE), np.float32)
    acc = cuda.local.array((PER_THREAD, PER_THREAD), np.float32)
    num_queries, num_keys, width = np.int32(S.shape[1]), np.int32(S.shape[2]), np.int32(V.shape[1])
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row, plane = block_index(-(-width // TILE), -(-num_queries // TILE))
    d0, q0 = np.int32(column * TILE), np.int32(row * TILE)
    batch, head = plane // heads, plane % heads
    v_row = batch * strides[2][0] + head // heads_per_kv * strides[2][1]
    o_row = batch * strides[3][0] + head * strides[3][1]
    lowest, highest = window  # of j - i: query i sees the keys j between them
    first = max(0, (q0 + lowest) // TILE * TILE)
    end = min(num_keys, ((min(q0 + TILE, num_queries) - 1 + highest) // TILE + 1) * TILE)
    for i in range(PER_THREAD):
        for j in range(PER_THREAD):
            acc[i, j] = 0
    for k in range(first, end, DEPTH):
        for n in range(y * SIDE + x, TILE * DEPTH, SIDE * SIDE):
            row, col = n // DEPTH, n % DEPTH
            S_tile[row, col] = (
                S[plane, q0 + row, k + col] if q0 + row < num_queries and k + col < num_keys else np.float32(0)
            )
            row, col = n // TILE, n % TILE
            inside = k + row < num_keys and d0 + col < width
            V_tile[row, col] = V[v_row + (k + row) * strides[2][2], d0 + col] if inside else np.float32(0)
        cuda.syncthreads()
        for col in range(DEPTH):
            for i in range(PER_THREAD):
                for j in range(PER_THREAD):
                    acc[i, j] += S_tile[i * SIDE + y, col] * V_tile[col, j * SIDE + x]
        cuda.syncthreads()
    for i in range(PER_THREAD):
        for j in range(PER_THREAD):
            row, col = q0 + i * SIDE + y, d0 + j * SIDE + x
            if row < num_queries and col < width:
                O[o_row + row * strides[3][2], col] = acc[i, j]


def launches(Q, K, V, O, lse, problem, workspace):
    """O and log-sum-exp; the scores are in the workspace."""
    problem.check(Q, K, V, O, lse)
    (Q, K, V, O), strides = as_matrices(problem, Q, K, V, O)
    planes, queries, keys = problem.batch * problem.heads, problem.queries, problem.keys
    S = workspace.array("scores", (planes, queries, keys), np.float32)
    _, heads_per_kv, window = size_arguments(problem)
    sizes, scale, block = (np.int32(problem.heads), heads_per_kv, window), np.float32(problem.factor), (SIDE, SIDE)
    rows, columns = -(-queries // TILE), -(-keys // TILE)
    by_warps, by_tiles = (-(-queries // WARPS), planes), (-(-V.shape[1] // TILE), rows, planes)
    return [
        Launch(*kernel_and_grid(standard, (columns, rows, planes)), block, (Q, K, S, strides, *sizes, scale)),
        Launch(*kernel_and_grid(softmax_rows, by_warps), WARP * WARPS, (S, reshape(lse, planes, queries), window)),
        Launch(*kernel_and_grid(multiply_by_v, by_tiles), block, (S, V, O, strides, *sizes)),
    ]
