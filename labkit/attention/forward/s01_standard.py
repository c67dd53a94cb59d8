"""Three kernels: one multiplies Q K^T and stores the scores, one makes weights of them, one multiplies these by V.

That is how the formula reads. Scores are float32, and there are queries x keys of them for each head.

Costs, of a head with queries and keys that are multiples of the tile, all of them seen:

    4 * queries * keys              bytes of workspace
    2 * 4 * queries * keys          bytes of scores written
    4 * 4 * queries * keys          bytes of scores read, where O has 64 columns

Limited by that matrix: at 16,384 queries and keys it has 1 GB a head. `s02_kv_outer` never stores it.
"""

from math import exp, inf, log

import numpy as np

from labkit import cuda
from labkit.arrays.views import reshape
from labkit.attention.blocks import place_of_block, within_limits
from labkit.attention.operands import matrices
from labkit.formats import FP32
from labkit.ladder import Launch

FORMATS = (FP32,)
TILE = 64  # queries and keys of a block; queries and columns of O
DEPTH = 32  # that it takes at a time
PADDED = DEPTH + 1  # a row of a tile in shared memory: neighbours in a column lie in different banks
EACH = 4  # rows, and columns, of a thread
SIDE = TILE // EACH  # threads along a side of a block
WARP, WARPS = 32, 8


@cuda.jit(launch_bounds=(SIDE * SIDE, 2))
def standard(Q, K, S, apart, heads, group, band, scale):
    """S = scale Q K^T, tile by tile; minus infinity where a query does not see a key of a tile that others see."""
    Q_tile = cuda.shared.array((TILE, PADDED), np.float32)
    K_tile = cuda.shared.array((TILE, PADDED), np.float32)
    sums = cuda.local.array((EACH, EACH), np.float32)
    queries, keys = np.int32(S.shape[1]), np.int32(S.shape[2])
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row, plane = place_of_block(-(-keys // TILE), -(-queries // TILE))
    left, top = np.int32(column * TILE), np.int32(row * TILE)
    batch, head = plane // heads, plane % heads
    q_row = batch * apart[0][0] + head * apart[0][1]
    k_row = batch * apart[1][0] + head // group * apart[1][1]
    lowest, highest = band
    if left <= top + TILE - 1 + highest and left + TILE - 1 >= top + lowest:
        for i in range(EACH):
            for j in range(EACH):
                sums[i, j] = 0
        for d in range(0, Q.shape[1], DEPTH):
            for n in range(y * SIDE + x, TILE * DEPTH, SIDE * SIDE):
                row, col = n // DEPTH, n % DEPTH
                q = k = np.float32(0)
                if d + col < Q.shape[1]:
                    if top + row < queries:
                        q = Q[q_row + (top + row) * apart[0][2], d + col]
                    if left + row < keys:
                        k = K[k_row + (left + row) * apart[1][2], d + col]
                Q_tile[row, col], K_tile[row, col] = q, k
            cuda.syncthreads()
            for col in range(DEPTH):
                for i in range(EACH):
                    for j in range(EACH):
                        sums[i, j] += Q_tile[i * SIDE + y, col] * K_tile[j * SIDE + x, col]
            cuda.syncthreads()
        for i in range(EACH):
            for j in range(EACH):
                row, col = top + i * SIDE + y, left + j * SIDE + x
                if row < queries and col < keys:
                    seen = row + lowest <= col and col <= row + highest
                    S[plane, row, col] = sums[i, j] * scale if seen else np.float32(-inf)


@cuda.jit(launch_bounds=WARP * WARPS)
def weights(S, lse, band):
    """Each row of S becomes exp(S - maximum) / sum; a warp has a row, and reads it three times."""
    lane, queries, keys = cuda.threadIdx.x % WARP, S.shape[1], S.shape[2]
    rows, plane, _ = place_of_block(-(-queries // WARPS), S.shape[0])
    row = rows * WARPS + cuda.threadIdx.x // WARP
    lowest, highest = band
    if row < queries:
        top = row // TILE * TILE  # what the first kernel wrote of this row
        first = max(0, (top + lowest) // TILE * TILE)
        behind = min(keys, ((min(top + TILE, queries) - 1 + highest) // TILE + 1) * TILE)
        most, total = np.float32(-inf), np.float32(0)
        for i in range(first + lane, behind, WARP):
            most = max(most, S[plane, row, i])
        for n in range(5):
            most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, 1 << n))
        origin = np.float32(0) if most == np.float32(-inf) else most
        for i in range(first + lane, behind, WARP):
            total += exp(S[plane, row, i] - origin)
        for n in range(5):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1 << n)
        share = np.float32(0) if total == np.float32(0) else np.float32(1) / total
        for i in range(first + lane, behind, WARP):
            S[plane, row, i] = exp(S[plane, row, i] - origin) * share
        if lane == 0:
            lse[plane, row] = np.float32(-inf) if total == np.float32(0) else origin + log(total)


@cuda.jit(launch_bounds=(SIDE * SIDE, 2))
def weighed(S, V, O, apart, heads, group, band):
    """O = S V, tile by tile."""
    S_tile = cuda.shared.array((TILE, PADDED), np.float32)
    V_tile = cuda.shared.array((DEPTH, TILE), np.float32)
    sums = cuda.local.array((EACH, EACH), np.float32)
    queries, keys, width = np.int32(S.shape[1]), np.int32(S.shape[2]), np.int32(V.shape[1])
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row, plane = place_of_block(-(-width // TILE), -(-queries // TILE))
    left, top = np.int32(column * TILE), np.int32(row * TILE)
    batch, head = plane // heads, plane % heads
    v_row = batch * apart[2][0] + head // group * apart[2][1]
    o_row = batch * apart[3][0] + head * apart[3][1]
    lowest, highest = band
    first = max(0, (top + lowest) // TILE * TILE)
    behind = min(keys, ((min(top + TILE, queries) - 1 + highest) // TILE + 1) * TILE)
    for i in range(EACH):
        for j in range(EACH):
            sums[i, j] = 0
    for k in range(first, behind, DEPTH):
        for n in range(y * SIDE + x, TILE * DEPTH, SIDE * SIDE):
            row, col = n // DEPTH, n % DEPTH
            S_tile[row, col] = S[plane, top + row, k + col] if top + row < queries and k + col < keys else np.float32(0)
            row, col = n // TILE, n % TILE
            inside = k + row < keys and left + col < width
            V_tile[row, col] = V[v_row + (k + row) * apart[2][2], left + col] if inside else np.float32(0)
        cuda.syncthreads()
        for col in range(DEPTH):
            for i in range(EACH):
                for j in range(EACH):
                    sums[i, j] += S_tile[i * SIDE + y, col] * V_tile[col, j * SIDE + x]
        cuda.syncthreads()
    for i in range(EACH):
        for j in range(EACH):
            row, col = top + i * SIDE + y, left + j * SIDE + x
            if row < queries and col < width:
                O[o_row + row * apart[3][2], col] = sums[i, j]


def launches(Q, K, V, O, lse, problem, workspace):
    """O and log-sum-exp; the scores are in the workspace."""
    problem.check(Q, K, V, O, lse)
    (Q, K, V, O), apart = matrices(problem, Q, K, V, O)
    planes, queries, keys = problem.batch * problem.heads, problem.queries, problem.keys
    S = workspace.array("scores", (planes, queries, keys), np.float32)
    band, heads, group = tuple(map(np.int32, problem.band)), np.int32(problem.heads), np.int32(problem.group)
    rows, columns = -(-queries // TILE), -(-keys // TILE)
    scale, block = np.float32(problem.factor), (SIDE, SIDE)
    by_warps, by_tiles = (-(-queries // WARPS), planes), (-(-V.shape[1] // TILE), rows, planes)
    return [
        Launch(*within_limits(standard, (columns, rows, planes)), block, (Q, K, S, apart, heads, group, band, scale)),
        Launch(*within_limits(weights, by_warps), WARP * WARPS, (S, reshape(lse, planes, queries), band)),
        Launch(*within_limits(weighed, by_tiles), block, (S, V, O, apart, heads, group, band)),
    ]
