"""Tensor cores: P and dS become left operands of the second GEMMs in the registers where they were computed.

A warp has 16 rows of keys or more, and multiplies by `mma.sync`. It computes scores of keys by queries, S^T = K Q^T,
and dP^T = V dO^T, since dV = P^T dO and dK = dS^T Q begin with P^T and dS^T: a lane has the elements that it needs for
the second GEMM, rounds them, and packs them in pairs. The kernel for dQ has queries as rows, and S and dP as they
are. Q, dO and K are loaded by `ldmatrix` for the first GEMMs, by `ldmatrix.trans` for the second ones. Wide heads
have more accumulators than registers: then two blocks have half of the columns of dK and dV each, and both compute P.

Costs per head of 64 elements, if queries and keys are multiples of the tiles and none is masked:

    2 * queries * HEAD / 8                          vectors of O and dO loaded for delta
    2 * keys * HEAD * (1 + queries / BM) / 8        vectors loaded for dK and dV
    2 * queries * HEAD * (1 + keys / BM) / 8        vectors loaded for dQ
    (2 * BM + 2 * BN) * HEAD * 2                    bytes of shared memory per block

Limited by latency: a block loads two tiles, waits for them, then multiplies, while memory is idle.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import block_from_end, block_index, divmod_u32, kernel_and_grid
from labkit.attention.operands import LOG2_E as LOG2_OF_E
from labkit.attention.operands import as_matrices, size_arguments
from labkit.attention.words import load_tile, specialise_format
from labkit.ladder import Launch

FORMAT = ptx.BF16
MI = 2  # fragments of 16 rows of a warp
WARPS = 4
THREADS = 32 * WARPS
BM, BN = 16 * MI * WARPS, 32  # rows of a block, keys for dK and dV, queries for dQ; and of a streaming tile
HEAD = 64  # columns of a tile: head_dim, padded with zeros
WORDS, STEPS = HEAD // 2, HEAD // 16  # of a row, and of k in GEMMs over head_dim
COLS = HEAD  # of the gradients of a block
PARTS = HEAD // COLS
NI, NO = BN // 8, COLS // 8  # fragments of 8 columns of scores and of gradients
SECOND_BYTE = BM * HEAD * 2  # offsets of the second tile of the block, and of the streaming tiles
THIRD_BYTE = 2 * SECOND_BYTE
FOURTH_BYTE = THIRD_BYTE + BN * HEAD * 2
SHARED_BYTES = FOURTH_BYTE + BN * HEAD * 2
# MI and BN for dK and dV, and for dQ, by HEAD: limited by registers
TILES = {64: ((2, 32), (2, 32)), 128: ((1, 32), (2, 16)), 192: ((1, 32),) * 2, 256: ((1, 32),) * 2}
HALVED = 192, 256  # HEAD for which columns of dK and dV are for two blocks
LANES, ROWS = 8, 16  # for delta: lanes per row, rows per block
LOG2_E = np.float32(LOG2_OF_E)


@cuda.jit(launch_bounds=LANES * ROWS)
def deltas(O, dO, delta, strides):
    """Compute delta, the sum of O * dO of each query, by `LANES` lanes per row."""
    num_queries, thread = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x)
    tile, head, batch = block_index(-(-num_queries // ROWS), delta.shape[1])
    row, lane = np.int32(tile * ROWS + thread // LANES), np.int32(thread % LANES)
    row_delta = np.float32(0)
    if row < num_queries:
        o_row = np.int32(batch * strides[3][0] + head * strides[3][1] + row * strides[3][2])
        do_row = np.int32(batch * strides[4][0] + head * strides[4][1] + row * strides[4][2])
        for word in range(4 * lane, O.shape[1], 4 * LANES):
            o, do = ptx.load4(O, (o_row, word)), ptx.load4(dO, (do_row, word))
            for n in range(4):
                (o_low, o_high), (do_low, do_high) = ptx.unpack2(o[n], FORMAT), ptx.unpack2(do[n], FORMAT)
                row_delta += o_low * do_low + o_high * do_high
    for n in range(3):
        row_delta += cuda.shfl_xor_sync(0xFFFFFFFF, row_delta, 1 << n)
    if lane == 0 and row < num_queries:
        delta[batch, head, row] = row_delta


@cuda.jit(device=True)
def compute_scores(scores, A_tile, y, B_tile, lane):
    """Compute scores = A B^T of a warp's rows of A, from row y on, and the rows of B."""
    a = cuda.local.array((MI, 4), np.uint32)
    a_row, a_vec = np.uint32(lane % 16), np.uint32(lane // 16)  # where this lane's row of a matrix starts
    b_row, b_vec = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                scores[i, j, n] = 0
    for step in range(STEPS):
        for i in range(MI):
            index = np.uint32(y + i * 16 + a_row), np.uint32((step * 2 + a_vec ^ a_row % 8) * 4)
            a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(A_tile, index)
        for j in range(0, NI, 2):
            index = np.uint32(j * 8 + b_row), np.uint32((step * 2 + b_vec ^ b_row % 8) * 4)
            b0, b1, b2, b3 = ptx.ldmatrix4(B_tile, index)
            for i in range(MI):
                ptx.mma(scores, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                ptx.mma(scores, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)


@cuda.jit(device=True)
def mask_weights(P, row0, col0, lowest, highest, num_cols, lane):
    """Set masked elements of P to 0: rows of a warp from row0 on, columns from col0 on."""
    for i in range(MI):
        for r in range(2):
            row = np.int32(row0 + i * 16 + r * 8 + lane // 4)
            first_col, last_col = np.int32(row + lowest), np.int32(min(row + highest, num_cols - 1))
            for j in range(NI):
                for n in range(2):
                    col = np.int32(col0 + j * 8 + lane % 4 * 2 + n)
                    if col < first_col or col > last_col:
                        P[i, j, 2 * r + n] = 0


@cuda.jit(device=True)
def accumulate(acc, scores, B_tile, first, lane):
    """Add P B to acc, with columns of B from 16-byte vector `first` on; P is rounded."""
    a = cuda.local.array((MI, 4), np.uint32)
    b_row, b_vec = np.uint32(lane % 16), np.uint32(lane // 16)
    for step in range(NI // 2):
        for i in range(MI):
            for n in range(2):
                j = step * 2 + n
                a[i, 2 * n] = ptx.pack2(scores[i, j, 0], scores[i, j, 1], FORMAT)
                a[i, 2 * n + 1] = ptx.pack2(scores[i, j, 2], scores[i, j, 3], FORMAT)
        for j in range(0, NO, 2):
            index = np.uint32(step * 16 + b_row), np.uint32((first + j + b_vec ^ b_row % 8) * 4)
            b0, b1, b2, b3 = ptx.ldmatrix4_transposed(B_tile, index)
            for i in range(MI):
                ptx.mma(acc, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                ptx.mma(acc, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)


@cuda.jit(device=True)
def store_gradient(X, acc, first_row, stride, row0, num_rows, first_word, factor, lane):
    """Store a warp's rows of a gradient, times a factor, from row0 on, and its columns, from a word on."""
    for i in range(MI):
        for r in range(2):
            row = np.int32(row0 + i * 16 + r * 8 + lane // 4)
            if row < num_rows:
                index = np.uint32(first_row + row * stride)
                for j in range(NO):
                    word = np.uint32(first_word + j * 4 + lane % 4)
                    if word < X.shape[1]:
                        X[index, word] = ptx.pack2(acc[i, j, 2 * r] * factor, acc[i, j, 2 * r + 1] * factor, FORMAT)


@cuda.jit(launch_bounds=THREADS)
def mma(Q, K, V, dO, lse, delta, dK, dV, strides, num_keys, heads_per_kv, window, scale):
    """Compute dK and dV; a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (BM, WORDS), np.uint32)
    V_tile = ptx.shared_array(SECOND_BYTE, (BM, WORDS), np.uint32)
    Q_tile = ptx.shared_array(THIRD_BYTE, (BN, WORDS), np.uint32)
    dO_tile = ptx.shared_array(FOURTH_BYTE, (BN, WORDS), np.uint32)
    P = cuda.local.array((MI, NI, 4), np.float32)
    dS = cuda.local.array((MI, NI, 4), np.float32)
    acc_dk = cuda.local.array((MI, NO, 4), np.float32)
    acc_dv = cuda.local.array((MI, NO, 4), np.float32)
    num_queries, thread = np.int32(lse.shape[2]), np.uint32(cuda.threadIdx.x)
    kv_heads, _ = divmod_u32(lse.shape[1], heads_per_kv)
    tile, kv_head, batch = block_index(-(-num_keys // BM) * PARTS, kv_heads)
    k0, part = np.int32(tile // PARTS * BM), np.uint32(tile % PARTS)
    lane, y = np.uint32(thread % 32), np.uint32(thread // 32 * (16 * MI))
    k_row = np.int32(batch * strides[1][0] + kv_head * strides[1][1])
    v_row = np.int32(batch * strides[2][0] + kv_head * strides[2][1])
    lowest, highest = window  # of j - i: query i sees the keys j between them
    # -- load K and V tile --
    load_tile(K_tile, K, k_row, strides[1][2], k0, num_keys, thread, THREADS)
    load_tile(V_tile, V, v_row, strides[2][2], k0, num_keys, thread, THREADS)
    for i in range(MI):
        for j in range(NO):
            for n in range(4):
                acc_dk[i, j, n] = acc_dv[i, j, n] = 0
    last_key = np.int32(min(k0 + BM, num_keys) - 1)
    first, end = np.int32(max(0, (k0 - highest) // BN * BN)), np.int32(min(num_queries, last_key - lowest + 1))
    for head in range(kv_head * heads_per_kv, kv_head * heads_per_kv + heads_per_kv):
        q_row = np.int32(batch * strides[0][0] + head * strides[0][1])
        do_row = np.int32(batch * strides[4][0] + head * strides[4][1])
        for q0 in range(first, end, BN):
            # -- load Q and dO tile; S^T = K Q^T and dP^T = V dO^T --
            cuda.syncthreads()  # all warps are done with the previous tiles
            load_tile(Q_tile, Q, q_row, strides[0][2], q0, num_queries, thread, THREADS)
            load_tile(dO_tile, dO, do_row, strides[4][2], q0, num_queries, thread, THREADS)
            cuda.syncthreads()
            compute_scores(P, K_tile, y, Q_tile, lane)
            compute_scores(dS, V_tile, y, dO_tile, lane)
            # -- P = exp2(S - lse), mask, dS = P * (dP - delta) --
            for j in range(NI):
                for n in range(2):
                    row = np.int32(q0 + j * 8 + lane % 4 * 2 + n)
                    row_lse = row_delta = np.float32(0)
                    if row < num_queries:
                        row_lse, row_delta = lse[batch, head, row] * LOG2_E, delta[batch, head, row]
                    for i in range(MI):
                        for index in range(n, 4, 2):
                            P[i, j, index] = ptx.exp2(P[i, j, index] * scale * LOG2_E - row_lse)
                            dS[i, j, index] -= row_delta
            if k0 < q0 + BN - 1 + lowest or last_key > q0 + highest or q0 + BN > num_queries:
                mask_weights(P, k0 + y, q0, -highest, -lowest, num_queries, lane)
            for i in range(MI):
                for j in range(NI):
                    for n in range(4):
                        dS[i, j, n] *= P[i, j, n]
            # -- dV += P^T dO, dK += dS^T Q --
            accumulate(acc_dv, P, dO_tile, part * NO, lane)
            accumulate(acc_dk, dS, Q_tile, part * NO, lane)
    # -- store dK and dV --
    dk_row = np.int32(batch * strides[6][0] + kv_head * strides[6][1])
    dv_row = np.int32(batch * strides[7][0] + kv_head * strides[7][1])
    store_gradient(dK, acc_dk, dk_row, strides[6][2], k0 + y, num_keys, part * (COLS // 2), scale, lane)
    store_gradient(dV, acc_dv, dv_row, strides[7][2], k0 + y, num_keys, part * (COLS // 2), np.float32(1), lane)


@cuda.jit(launch_bounds=THREADS)
def of_queries(Q, K, V, dO, lse, delta, dQ, strides, num_keys, heads_per_kv, window, scale):
    """Compute dQ; a block has a tile of queries."""
    Q_tile = ptx.shared_array(0, (BM, WORDS), np.uint32)
    dO_tile = ptx.shared_array(SECOND_BYTE, (BM, WORDS), np.uint32)
    K_tile = ptx.shared_array(THIRD_BYTE, (BN, WORDS), np.uint32)
    V_tile = ptx.shared_array(FOURTH_BYTE, (BN, WORDS), np.uint32)
    P = cuda.local.array((MI, NI, 4), np.float32)
    dS = cuda.local.array((MI, NI, 4), np.float32)
    acc_dq = cuda.local.array((MI, NO, 4), np.float32)
    row_lse = cuda.local.array((MI, 2), np.float32)
    row_delta = cuda.local.array((MI, 2), np.float32)
    num_queries, thread = np.int32(lse.shape[2]), np.uint32(cuda.threadIdx.x)
    tile, head, batch = block_from_end(-(-num_queries // BM), lse.shape[1])  # causal: these take longest
    q0 = np.int32(tile * BM)
    lane, y = np.uint32(thread % 32), np.uint32(thread // 32 * (16 * MI))
    q_row = np.int32(batch * strides[0][0] + head * strides[0][1])
    do_row = np.int32(batch * strides[4][0] + head * strides[4][1])
    k_row = np.int32(batch * strides[1][0] + head // heads_per_kv * strides[1][1])
    v_row = np.int32(batch * strides[2][0] + head // heads_per_kv * strides[2][1])
    lowest, highest = window  # of j - i: query i sees the keys j between them
    # -- load Q and dO tile, log-sum-exp and delta --
    load_tile(Q_tile, Q, q_row, strides[0][2], q0, num_queries, thread, THREADS)
    load_tile(dO_tile, dO, do_row, strides[4][2], q0, num_queries, thread, THREADS)
    for i in range(MI):
        for r in range(2):
            row = np.int32(q0 + y + i * 16 + r * 8 + lane // 4)
            row_lse[i, r] = row_delta[i, r] = 0
            if row < num_queries:
                row_lse[i, r], row_delta[i, r] = lse[batch, head, row] * LOG2_E, delta[batch, head, row]
        for j in range(NO):
            for n in range(4):
                acc_dq[i, j, n] = 0
    last_query = np.int32(min(q0 + BM, num_queries) - 1)
    for k0 in range(max(0, (q0 + lowest) // BN * BN), min(num_keys, last_query + highest + 1), BN):
        # -- load K and V tile; S = Q K^T and dP = dO V^T --
        cuda.syncthreads()  # all warps are done with the previous tiles
        load_tile(K_tile, K, k_row, strides[1][2], k0, num_keys, thread, THREADS)
        load_tile(V_tile, V, v_row, strides[2][2], k0, num_keys, thread, THREADS)
        cuda.syncthreads()
        compute_scores(P, Q_tile, y, K_tile, lane)
        compute_scores(dS, dO_tile, y, V_tile, lane)
        # -- P = exp2(S - lse), mask, dS = P * (dP - delta) --
        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    P[i, j, n] = ptx.exp2(P[i, j, n] * scale * LOG2_E - row_lse[i, n // 2])
        if k0 < last_query + lowest or k0 + BN - 1 > q0 + highest or k0 + BN > num_keys:
            mask_weights(P, q0 + y, k0, lowest, highest, num_keys, lane)
        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    dS[i, j, n] = P[i, j, n] * (dS[i, j, n] - row_delta[i, n // 2])
        # -- dQ += dS K --
        accumulate(acc_dq, dS, K_tile, 0, lane)
    # -- store dQ --
    dq_row = np.int32(batch * strides[5][0] + head * strides[5][1])
    store_gradient(dQ, acc_dq, dq_row, strides[5][2], q0 + y, num_queries, 0, scale, lane)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, format, workspace):
    """dQ, dK and dV; delta is in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV, dtype=format.dtype)
    (Q, K, V, O, dO, dQ, dK, dV), strides = as_matrices(problem, Q, K, V, O, dO, dQ, dK, dV, words=True)
    queries, heads, batch = problem.queries, problem.heads, problem.batch
    delta = workspace.array("delta", (batch, heads, queries), np.float32)
    head = -(-problem.head_dim // 64) * 64
    parts = 2 if head in HALVED else 1
    (fragments, bn), (fragments_of_queries, bn_of_queries) = TILES[head]
    of_keys = specialise_format(mma, format, MI=fragments, BN=bn, HEAD=head, COLS=head // parts)
    of_rows = specialise_format(of_queries, format, MI=fragments_of_queries, BN=bn_of_queries, HEAD=head)
    of_all = strides, *size_arguments(problem), np.float32(problem.factor)
    bm, bm_of_queries = (16 * WARPS * count for count in (fragments, fragments_of_queries))
    by_keys = -(-problem.keys // bm) * parts, problem.kv_heads, batch
    by_queries = -(-queries // bm_of_queries), heads, batch
    by_rows = -(-queries // ROWS), heads, batch
    shared_bytes = 4 * (bm + bn) * head, 4 * (bm_of_queries + bn_of_queries) * head
    inputs = Q, K, V, dO, lse, delta
    return [
        Launch(*kernel_and_grid(specialise_format(deltas, format), by_rows), LANES * ROWS, (O, dO, delta, strides)),
        Launch(*kernel_and_grid(of_keys, by_keys), THREADS, (*inputs, dK, dV, *of_all), shared_bytes[0]),
        Launch(*kernel_and_grid(of_rows, by_queries), THREADS, (*inputs, dQ, *of_all), shared_bytes[1]),
    ]
