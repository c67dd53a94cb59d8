"""Scores are recomputed, once for dQ with Q-outer loops, and once for dK and dV with KV-outer loops.

One kernel has a block per tile of queries, whose dQ stays in registers while the block loops over all keys that they
see. Another has a block per tile of keys, and keeps their dK and dV while it loops over all queries that see them, from
all heads that share the keys. No block adds to what another one writes, so the result is deterministic. (Dao,
FlashAttention-2, 2023, algorithm 2, which has one kernel and adds to dQ by atomics.)

P is exp(S - lse). But the last bit of a float32 score of a million is 0.06, and so is that of its log-sum-exp: P would
be some percent off, and useless for larger scores. So the first kernel computes row_max and row_sum again, as forward
does, and the second one uses them: P adds up to 1, since both kernels sum a score in the same order. Delta, the sum of
O * dO, is summed in the order of dO V^T: where P is 1 for one key, dS = P * (dO V^T - delta) is exactly 0, and no
rounding error is multiplied by a large key.

Costs per head, if queries and keys are multiples of the tile and none is masked:

    queries * HEAD * (3 + 2 * keys / TILE)      numbers loaded for dQ
    2 * keys * HEAD * (1 + queries / TILE)      numbers loaded for dK and dV
    (4 * TILE * ROW + 2 * TILE * P_ROW) * 4     bytes of shared memory per block

Limited by the CUDA cores, and by shared memory, which delivers both factors of each multiply-add. There are seven GEMMs
instead of five, since two of them are computed twice.
"""

from functools import cache
from math import inf

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.attention.blocks import block_from_end, block_index, divmod_u32, kernel_and_grid
from labkit.attention.operands import as_matrices, size_arguments
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge

FORMATS = (FP32,)
TILE = 32  # queries, and keys, of a block
HEAD = 64  # columns of a tile: head_dim, padded with zeros
ROW = HEAD + 1  # of a tile in shared memory: neighbours in a column are in different banks
P_ROW = 48  # of P: two neighbouring rows are in different banks
SIDE, DOWN = 16, 8  # threads along a row and a column
THREADS = SIDE * DOWN
ROWS, COLS = TILE // DOWN, TILE // SIDE  # scores of a thread
GRAD_COLS = HEAD // SIDE  # columns of a gradient, of a thread
V_BYTE, Q_BYTE, DO_BYTE, DS_BYTE = (n * TILE * ROW * 4 for n in range(1, 5))  # where tiles begin
P_BYTE = DS_BYTE + TILE * P_ROW * 4
SHARED_BYTES = P_BYTE + TILE * P_ROW * 4
SIZES = 32, 16  # TILE: the first whose tiles the shared memory of a block holds
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit(device=True)
def load_tile(tile, X, first, stride, position, length, factor, thread):
    """Load rows of X, times a factor, from a position of a head on; zeros past its length and head_dim."""
    for n in range(thread, TILE * HEAD, THREADS):
        row, col = n // HEAD, n % HEAD
        inside = position + row < length and col < X.shape[1]
        tile[row, col] = X[first + (position + row) * stride, col] * factor if inside else np.float32(0)


@cuda.jit(device=True)
def compute_scores(scores, Q_tile, K_tile, V_tile, dO_tile, x, y):
    """Compute tiles of S = Q K^T, as exponents of 2, and of dP = dO V^T."""
    for i in range(ROWS):
        for j in range(COLS):
            scores[0, i, j] = scores[1, i, j] = 0
    for d in range(HEAD):
        for i in range(ROWS):
            for j in range(COLS):
                scores[0, i, j] += Q_tile[y + i * DOWN, d] * K_tile[x + j * SIDE, d]
                scores[1, i, j] += dO_tile[y + i * DOWN, d] * V_tile[x + j * SIDE, d]


@cuda.jit(device=True)
def is_visible(row, col, num_keys, window):
    """Whether a query sees a key."""
    return col < num_keys and row + window[0] <= col and col <= row + window[1]


@cuda.jit(launch_bounds=THREADS)
def of_queries(Q, K, V, O, dO, delta, row_maxima, recips, dQ, strides, num_keys, heads_per_kv, window, scale, factor):
    """Compute dQ, and delta, row_max and 1 / row_sum of each row; a block has a tile of queries."""
    K_tile = ptx.shared_array(0, (TILE, ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (TILE, ROW), np.float32)
    Q_tile = ptx.shared_array(Q_BYTE, (TILE, ROW), np.float32)
    dO_tile = ptx.shared_array(DO_BYTE, (TILE, ROW), np.float32)
    dS_tile = ptx.shared_array(DS_BYTE, (TILE, P_ROW), np.float32)
    scores = cuda.local.array((2, ROWS, COLS), np.float32)
    acc = cuda.local.array((ROWS, GRAD_COLS), np.float32)
    row_max = cuda.local.array(ROWS, np.float32)  # of the scores so far
    row_sum = cuda.local.array(ROWS, np.float32)  # of the elements of P that this thread has
    row_delta = cuda.local.array(ROWS, np.float32)
    num_queries, thread = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x)
    x, y = np.int32(thread % SIDE), np.int32(thread // SIDE)
    tile, head, batch = block_from_end(-(-num_queries // TILE), delta.shape[1])  # causal: these take longest
    q0 = np.int32(tile * TILE)
    k_row = batch * strides[1][0] + head // heads_per_kv * strides[1][1]
    v_row = batch * strides[2][0] + head // heads_per_kv * strides[2][1]
    lowest, highest = window  # of j - i: query i sees the keys j between them
    one = np.float32(1)
    # -- load Q, dO and O tile; delta --
    load_tile(Q_tile, Q, batch * strides[0][0] + head * strides[0][1], strides[0][2], q0, num_queries, scale, thread)
    load_tile(dO_tile, dO, batch * strides[4][0] + head * strides[4][1], strides[4][2], q0, num_queries, one, thread)
    load_tile(V_tile, O, batch * strides[3][0] + head * strides[3][1], strides[3][2], q0, num_queries, one, thread)
    cuda.syncthreads()
    for i in range(ROWS):
        row_max[i], row_sum[i], row_delta[i] = -inf, 0, 0
        for d in range(HEAD):
            row_delta[i] += dO_tile[y + i * DOWN, d] * V_tile[y + i * DOWN, d]
        for j in range(GRAD_COLS):
            acc[i, j] = 0

    last_query = min(q0 + TILE, num_queries) - 1
    for k0 in range(max(0, (q0 + lowest) // TILE * TILE), min(num_keys, last_query + highest + 1), TILE):
        # -- load K and V tile; S = Q K^T and dP = dO V^T --
        cuda.syncthreads()  # all warps are done with the previous tiles
        load_tile(K_tile, K, k_row, strides[1][2], k0, num_keys, one, thread)
        load_tile(V_tile, V, v_row, strides[2][2], k0, num_keys, one, thread)
        cuda.syncthreads()
        compute_scores(scores, Q_tile, K_tile, V_tile, dO_tile, x, y)
        # -- mask, update row_max and row_sum, dS = P * (dP - delta) --
        for i in range(ROWS):
            old_max = row_max[i]
            for j in range(COLS):
                if not is_visible(q0 + y + i * DOWN, k0 + x + j * SIDE, num_keys, window):
                    scores[0, i, j] = -inf
                row_max[i] = max(row_max[i], scores[0, i, j])
            for n in range(4):
                row_max[i] = max(row_max[i], cuda.shfl_xor_sync(0xFFFFFFFF, row_max[i], 1 << n))
            safe_max = np.float32(0) if row_max[i] == np.float32(-inf) else row_max[i]
            alpha = ptx.exp2(old_max - safe_max)
            row_sum[i] *= alpha
            for j in range(GRAD_COLS):
                acc[i, j] *= alpha
            for j in range(COLS):
                p = ptx.exp2(scores[0, i, j] - safe_max)
                row_sum[i] += p
                dS_tile[y + i * DOWN, x + j * SIDE] = p * (scores[1, i, j] - row_delta[i])
        # -- dQ += dS K --
        cuda.syncthreads()
        for col in range(TILE):
            for i in range(ROWS):
                ds = dS_tile[y + i * DOWN, col]
                for j in range(GRAD_COLS):
                    acc[i, j] += ds * K_tile[col, x + j * SIDE]
    # -- store dQ, and delta, maximum and share of each row --
    for i in range(ROWS):
        row = q0 + y + i * DOWN
        for n in range(4):
            row_sum[i] += cuda.shfl_xor_sync(0xFFFFFFFF, row_sum[i], 1 << n)
        recip = np.float32(0) if row_sum[i] == np.float32(0) else np.float32(1) / row_sum[i]
        for j in range(GRAD_COLS):
            col = x + j * SIDE
            if row < num_queries and col < dQ.shape[1]:
                index = batch * strides[5][0] + head * strides[5][1] + row * strides[5][2]
                dQ[index, col] = acc[i, j] * recip * factor
        if x == 0 and row < num_queries:
            delta[batch, head, row], recips[batch, head, row] = row_delta[i], recip
            row_maxima[batch, head, row] = row_max[i] if recip > 0 else np.float32(0)


@cuda.jit(launch_bounds=THREADS)
def recomputed(Q, K, V, dO, delta, row_maxima, recips, dK, dV, strides, num_keys, heads_per_kv, window, scale):
    """Compute dK and dV; a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (TILE, ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (TILE, ROW), np.float32)
    Q_tile = ptx.shared_array(Q_BYTE, (TILE, ROW), np.float32)
    dO_tile = ptx.shared_array(DO_BYTE, (TILE, ROW), np.float32)
    P_tile = ptx.shared_array(P_BYTE, (TILE, P_ROW), np.float32)
    dS_tile = ptx.shared_array(DS_BYTE, (TILE, P_ROW), np.float32)
    scores = cuda.local.array((2, ROWS, COLS), np.float32)
    acc_dk = cuda.local.array((ROWS, GRAD_COLS), np.float32)
    acc_dv = cuda.local.array((ROWS, GRAD_COLS), np.float32)
    num_queries, thread = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x)
    x, y = np.int32(thread % SIDE), np.int32(thread // SIDE)
    kv_heads, _ = divmod_u32(delta.shape[1], heads_per_kv)
    tile, kv_head, batch = block_index(-(-num_keys // TILE), kv_heads)
    k0, one = np.int32(tile * TILE), np.float32(1)
    lowest, highest = window  # of j - i: query i sees the keys j between them
    # -- load K and V tile --
    load_tile(K_tile, K, batch * strides[1][0] + kv_head * strides[1][1], strides[1][2], k0, num_keys, one, thread)
    load_tile(V_tile, V, batch * strides[2][0] + kv_head * strides[2][1], strides[2][2], k0, num_keys, one, thread)
    for i in range(ROWS):
        for j in range(GRAD_COLS):
            acc_dk[i, j] = acc_dv[i, j] = 0
    last_key = min(k0 + TILE, num_keys) - 1
    first, end = max(0, (k0 - highest) // TILE * TILE), min(num_queries, last_key - lowest + 1)
    for head in range(kv_head * heads_per_kv, kv_head * heads_per_kv + heads_per_kv):
        q_row = batch * strides[0][0] + head * strides[0][1]
        do_row = batch * strides[4][0] + head * strides[4][1]
        for q0 in range(first, end, TILE):
            # -- load Q and dO tile; S = Q K^T and dP = dO V^T --
            cuda.syncthreads()  # all warps are done with the previous tiles
            load_tile(Q_tile, Q, q_row, strides[0][2], q0, num_queries, scale, thread)
            load_tile(dO_tile, dO, do_row, strides[4][2], q0, num_queries, one, thread)
            cuda.syncthreads()
            compute_scores(scores, Q_tile, K_tile, V_tile, dO_tile, x, y)
            # -- mask, P = exp2(S - row_max) / row_sum, dS = P * (dP - delta) --
            for i in range(ROWS):
                row = np.int32(q0 + y + i * DOWN)
                row_max = recip = row_delta = np.float32(0)
                if row < num_queries:
                    row_max, recip = row_maxima[batch, head, row], recips[batch, head, row]
                    row_delta = delta[batch, head, row]
                for j in range(COLS):
                    p = np.float32(0)
                    if row < num_queries and is_visible(row, k0 + x + j * SIDE, num_keys, window):
                        p = ptx.exp2(scores[0, i, j] - row_max) * recip
                    P_tile[y + i * DOWN, x + j * SIDE] = p
                    dS_tile[y + i * DOWN, x + j * SIDE] = p * (scores[1, i, j] - row_delta)
            # -- dV += P^T dO, dK += dS^T Q --
            cuda.syncthreads()
            for row in range(TILE):
                for i in range(ROWS):
                    p, ds = P_tile[row, y + i * DOWN], dS_tile[row, y + i * DOWN]
                    for j in range(GRAD_COLS):
                        acc_dv[i, j] += p * dO_tile[row, x + j * SIDE]
                        acc_dk[i, j] += ds * Q_tile[row, x + j * SIDE]
    # -- store dK and dV --
    for i in range(ROWS):
        row = k0 + y + i * DOWN
        for j in range(GRAD_COLS):
            col = x + j * SIDE
            if row < num_keys and col < dK.shape[1]:
                dK[batch * strides[6][0] + kv_head * strides[6][1] + row * strides[6][2], col] = acc_dk[i, j] * LN_2
                dV[batch * strides[7][0] + kv_head * strides[7][1] + row * strides[7][2], col] = acc_dv[i, j]


def choose_tile(head_dim: int, max_bytes: int) -> tuple[int, int, int]:
    """The first of `SIZES` whose tiles fit in so much shared memory, the byte where P begins there, and all bytes.

    Raise TooLarge if not even the smallest tiles fit.
    """
    for tile in SIZES:
        p_byte = tile * (4 * (-(-head_dim // SIDE) * SIDE + 1) + P_ROW) * 4
        shared_bytes = p_byte + tile * P_ROW * 4
        if shared_bytes <= max_bytes:
            return tile, p_byte, shared_bytes
    raise TooLarge(f"tiles of {head_dim} numbers take {shared_bytes} bytes, and a block has {max_bytes}")


_specialised = cache(specialise)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, workspace):
    """dQ, dK and dV; delta, and the numbers that turn scores into P, are in the workspace. Log-sum-exp is not read."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV)
    (Q, K, V, O, dO, dQ, dK, dV), strides = as_matrices(problem, Q, K, V, O, dO, dQ, dK, dV)
    max_bytes = cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    tile, p_byte, shared_bytes = choose_tile(problem.head_dim, max_bytes)  # dQ does not need P
    sizes = {"TILE": tile, "HEAD": -(-problem.head_dim // SIDE) * SIDE}
    shape = problem.batch, problem.heads, problem.queries
    stats = [workspace.array(role, shape, np.float32) for role in ("delta", "maximum", "reciprocal of the sum")]
    factor = np.float32(problem.factor)
    shared = strides, *size_arguments(problem), factor * LOG2_E
    by_queries = -(-problem.queries // tile), problem.heads, problem.batch
    by_keys = -(-problem.keys // tile), problem.kv_heads, problem.batch
    return [
        Launch(
            *kernel_and_grid(_specialised(of_queries, **sizes), by_queries),
            THREADS,
            (Q, K, V, O, dO, *stats, dQ, *shared, factor),
            p_byte,
        ),
        Launch(
            *kernel_and_grid(_specialised(recomputed, **sizes), by_keys),
            THREADS,
            (Q, K, V, dO, *stats, dK, dV, *shared),
            shared_bytes,
        ),
    ]
