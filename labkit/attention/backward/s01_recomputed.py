"""Scores are computed again, once for dK and dV with keys outside, and once more for dQ with queries outside.

A block has a tile of keys, and the gradients of these keys and of their values stay in its registers while all queries
pass by that see some of them, from all heads that share the keys. Another kernel has tiles of queries, as forward. So
nobody adds to what another block writes, and no order is left to chance. Weights come from log-sum-exp at once: no
maximum, no rescaling. (Dao, FlashAttention-2, 2023, algorithm 2, which has one kernel and adds to dQ by atomics.)

Costs, of a head whose queries and keys are multiples of the tile, all of them seen:

    2 * queries * HEAD                          numbers of O and dO loaded for delta
    2 * keys * HEAD * (1 + queries / TILE)      numbers loaded for dK and dV
    2 * queries * HEAD * (1 + keys / TILE)      numbers loaded for dQ
    (4 * TILE * ROW + 2 * TILE * P_ROW) * 4     bytes of shared memory per block

Limited by the CUDA cores, and by shared memory, from which they take both factors of each product. Seven products are
made in place of the five that it takes, since two of them are needed twice.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.attention.operands import matrices
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge

FORMATS = (FP32,)
TILE = 32  # queries, and keys, of a block
HEAD = 64  # columns of a tile: head_dim and zeros
ROW = HEAD + 1  # of a tile in shared memory: neighbours in a column lie in different banks
P_ROW = 48  # of weights: two neighbouring rows lie in different banks
SIDE, DOWN = 16, 8  # threads along a row, and down a column
THREADS = SIDE * DOWN
ROWS, COLS = TILE // DOWN, TILE // SIDE  # scores of a thread
WIDE = HEAD // SIDE  # columns of a gradient, of a thread
V_BYTE, Q_BYTE, DO_BYTE, P_BYTE = (n * TILE * ROW * 4 for n in range(1, 5))  # where tiles begin
DS_BYTE = P_BYTE + TILE * P_ROW * 4
SHARED_BYTES = DS_BYTE + TILE * P_ROW * 4
SIZES = 32, 16  # TILE: the first whose tiles the shared memory of a block holds
WARP = 32
LOG2_E = np.float32(1.4426950408889634)


@cuda.jit(launch_bounds=THREADS)
def deltas(O, dO, delta, apart):
    """The sum of O * dO of each query, by a warp."""
    queries, lane = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x % WARP)
    row = np.int32(cuda.blockIdx.x * (THREADS // WARP) + cuda.threadIdx.x // WARP)
    head, batch = np.int32(cuda.blockIdx.y), np.int32(cuda.blockIdx.z)
    if row < queries:
        o_row = batch * apart[3][0] + head * apart[3][1] + row * apart[3][2]
        do_row = batch * apart[4][0] + head * apart[4][1] + row * apart[4][2]
        total = np.float32(0)
        for d in range(lane, O.shape[1], WARP):
            total += O[o_row, d] * dO[do_row, d]
        for n in range(5):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1 << n)
        if lane == 0:
            delta[batch, head, row] = total


@cuda.jit(device=True)
def load(tile, X, first, apart, position, length, thread):
    """The block loads rows of X, from a position of a head on, and zeros behind its length and beside head_dim."""
    for n in range(thread, TILE * HEAD, THREADS):
        row, col = n // HEAD, n % HEAD
        inside = position + row < length and col < X.shape[1]
        tile[row, col] = X[first + (position + row) * apart, col] if inside else np.float32(0)


@cuda.jit(device=True)
def weigh(Q_tile, K_tile, V_tile, dO_tile, P_tile, dS_tile, scores, lse, delta, place, keys, band, scale, x, y):
    """The weights of a tile of scores, and their gradients, into shared memory."""
    batch, head, top, left = place
    queries = np.int32(lse.shape[2])
    for i in range(ROWS):
        for j in range(COLS):
            scores[0, i, j] = scores[1, i, j] = 0
    for d in range(HEAD):
        for i in range(ROWS):
            for j in range(COLS):
                scores[0, i, j] += Q_tile[y + i * DOWN, d] * K_tile[x + j * SIDE, d]
                scores[1, i, j] += dO_tile[y + i * DOWN, d] * V_tile[x + j * SIDE, d]
    for i in range(ROWS):
        row = top + y + i * DOWN
        sum_of_row = of_row = np.float32(0)
        if row < queries:
            sum_of_row, of_row = lse[batch, head, row] * LOG2_E, delta[batch, head, row]
        for j in range(COLS):
            col, weight = left + x + j * SIDE, np.float32(0)
            if row < queries and col < keys and row + band[0] <= col and col <= row + band[1]:
                weight = ptx.exp2(scores[0, i, j] * scale * LOG2_E - sum_of_row)
            P_tile[y + i * DOWN, x + j * SIDE] = weight
            dS_tile[y + i * DOWN, x + j * SIDE] = weight * (scores[1, i, j] - of_row)


@cuda.jit(launch_bounds=THREADS)
def recomputed(Q, K, V, dO, lse, delta, dK, dV, apart, keys, group, band, scale):
    """dK and dV: a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (TILE, ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (TILE, ROW), np.float32)
    Q_tile = ptx.shared_array(Q_BYTE, (TILE, ROW), np.float32)
    dO_tile = ptx.shared_array(DO_BYTE, (TILE, ROW), np.float32)
    P_tile = ptx.shared_array(P_BYTE, (TILE, P_ROW), np.float32)
    dS_tile = ptx.shared_array(DS_BYTE, (TILE, P_ROW), np.float32)
    scores = cuda.local.array((2, ROWS, COLS), np.float32)
    of_keys = cuda.local.array((ROWS, WIDE), np.float32)
    of_values = cuda.local.array((ROWS, WIDE), np.float32)
    queries, thread = np.int32(lse.shape[2]), np.int32(cuda.threadIdx.x)
    x, y = np.int32(thread % SIDE), np.int32(thread // SIDE)
    left, own, batch = np.int32(cuda.blockIdx.x * TILE), np.int32(cuda.blockIdx.y), np.int32(cuda.blockIdx.z)
    lowest, highest = band
    load(K_tile, K, batch * apart[1][0] + own * apart[1][1], apart[1][2], left, keys, thread)
    load(V_tile, V, batch * apart[2][0] + own * apart[2][1], apart[2][2], left, keys, thread)
    for i in range(ROWS):
        for j in range(WIDE):
            of_keys[i, j] = of_values[i, j] = 0
    last = min(left + TILE, keys) - 1
    first, behind = max(0, (left - highest) // TILE * TILE), min(queries, last - lowest + 1)
    for head in range(own * group, own * group + group):
        q_row = batch * apart[0][0] + head * apart[0][1]
        do_row = batch * apart[4][0] + head * apart[4][1]
        for top in range(first, behind, TILE):
            cuda.syncthreads()  # all have done with the tiles before
            load(Q_tile, Q, q_row, apart[0][2], top, queries, thread)
            load(dO_tile, dO, do_row, apart[4][2], top, queries, thread)
            cuda.syncthreads()
            place = batch, head, top, left
            weigh(Q_tile, K_tile, V_tile, dO_tile, P_tile, dS_tile, scores, lse, delta, place, keys, band, scale, x, y)
            cuda.syncthreads()
            for row in range(TILE):
                for i in range(ROWS):
                    weight, slope = P_tile[row, y + i * DOWN], dS_tile[row, y + i * DOWN]
                    for j in range(WIDE):
                        of_values[i, j] += weight * dO_tile[row, x + j * SIDE]
                        of_keys[i, j] += slope * Q_tile[row, x + j * SIDE]
    for i in range(ROWS):
        row = left + y + i * DOWN
        for j in range(WIDE):
            col = x + j * SIDE
            if row < keys and col < dK.shape[1]:
                dK[batch * apart[6][0] + own * apart[6][1] + row * apart[6][2], col] = of_keys[i, j] * scale
                dV[batch * apart[7][0] + own * apart[7][1] + row * apart[7][2], col] = of_values[i, j]


@cuda.jit(launch_bounds=THREADS)
def of_queries(Q, K, V, dO, lse, delta, dQ, apart, keys, group, band, scale):
    """dQ: a block has a tile of queries."""
    K_tile = ptx.shared_array(0, (TILE, ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (TILE, ROW), np.float32)
    Q_tile = ptx.shared_array(Q_BYTE, (TILE, ROW), np.float32)
    dO_tile = ptx.shared_array(DO_BYTE, (TILE, ROW), np.float32)
    P_tile = ptx.shared_array(P_BYTE, (TILE, P_ROW), np.float32)
    dS_tile = ptx.shared_array(DS_BYTE, (TILE, P_ROW), np.float32)
    scores = cuda.local.array((2, ROWS, COLS), np.float32)
    sums = cuda.local.array((ROWS, WIDE), np.float32)
    queries, thread = np.int32(lse.shape[2]), np.int32(cuda.threadIdx.x)
    x, y = np.int32(thread % SIDE), np.int32(thread // SIDE)
    head, batch = np.int32(cuda.blockIdx.y), np.int32(cuda.blockIdx.z)
    top = np.int32((cuda.gridDim.x - 1 - cuda.blockIdx.x) * TILE)  # where it is causal the last ones take longest
    k_row = batch * apart[1][0] + head // group * apart[1][1]
    v_row = batch * apart[2][0] + head // group * apart[2][1]
    lowest, highest = band
    load(Q_tile, Q, batch * apart[0][0] + head * apart[0][1], apart[0][2], top, queries, thread)
    load(dO_tile, dO, batch * apart[4][0] + head * apart[4][1], apart[4][2], top, queries, thread)
    for i in range(ROWS):
        for j in range(WIDE):
            sums[i, j] = 0
    bottom = min(top + TILE, queries) - 1
    for left in range(max(0, (top + lowest) // TILE * TILE), min(keys, bottom + highest + 1), TILE):
        cuda.syncthreads()  # all have done with the tiles before
        load(K_tile, K, k_row, apart[1][2], left, keys, thread)
        load(V_tile, V, v_row, apart[2][2], left, keys, thread)
        cuda.syncthreads()
        place = batch, head, top, left
        weigh(Q_tile, K_tile, V_tile, dO_tile, P_tile, dS_tile, scores, lse, delta, place, keys, band, scale, x, y)
        cuda.syncthreads()
        for col in range(TILE):
            for i in range(ROWS):
                slope = dS_tile[y + i * DOWN, col]
                for j in range(WIDE):
                    sums[i, j] += slope * K_tile[col, x + j * SIDE]
    for i in range(ROWS):
        row = top + y + i * DOWN
        for j in range(WIDE):
            col = x + j * SIDE
            if row < queries and col < dQ.shape[1]:
                dQ[batch * apart[5][0] + head * apart[5][1] + row * apart[5][2], col] = sums[i, j] * scale


@cache
def constants(head_dim: int, most_bytes: int) -> dict[str, int]:
    """Of the kernels, and of their launches, for a head_dim and so much shared memory of a block.

    Raises
    ------
    TooLarge
        Not even the smallest tiles fit.
    """
    head = -(-head_dim // SIDE) * SIDE
    for tile in SIZES:
        whole, small = tile * (head + 1) * 4, tile * P_ROW * 4
        found = {"TILE": tile, "ROWS": tile // DOWN, "COLS": tile // SIDE}
        found |= {"HEAD": head, "ROW": head + 1, "WIDE": head // SIDE}
        found |= {"V_BYTE": whole, "Q_BYTE": 2 * whole, "DO_BYTE": 3 * whole, "P_BYTE": 4 * whole}
        found |= {"DS_BYTE": 4 * whole + small, "SHARED_BYTES": 4 * whole + 2 * small}
        if found["SHARED_BYTES"] <= most_bytes:
            return found
    raise TooLarge(f"tiles of {head_dim} numbers take {found['SHARED_BYTES']} bytes, and a block has {most_bytes}")


_in_sizes = cache(specialise)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, workspace):
    """dQ, dK and dV; delta is in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV)
    (Q, K, V, O, dO, dQ, dK, dV), apart = matrices(problem, Q, K, V, O, dO, dQ, dK, dV)
    known = dict(constants(problem.head_dim, cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
    shared_bytes = known.pop("SHARED_BYTES")
    queries, heads, batch = problem.queries, problem.heads, problem.batch
    delta = workspace.array("delta", (batch, heads, queries), np.float32)
    sizes = np.int32(problem.keys), np.int32(problem.group), tuple(map(np.int32, problem.band))
    of_all = apart, *sizes, np.float32(problem.factor)
    of_keys, of_rows = (_in_sizes(kernel, **known) for kernel in (recomputed, of_queries))
    tiles_of_keys, tiles_of_queries = (-(-length // known["TILE"]) for length in (problem.keys, queries))
    by_warps = -(-queries // (THREADS // WARP)), heads, batch
    given = Q, K, V, dO, lse, delta
    return [
        Launch(deltas, by_warps, THREADS, (O, dO, delta, apart)),
        Launch(of_keys, (tiles_of_keys, problem.kv_heads, batch), THREADS, (*given, dK, dV, *of_all), shared_bytes),
        Launch(of_rows, (tiles_of_queries, heads, batch), THREADS, (*given, dQ, *of_all), shared_bytes),
    ]
