"""One fused kernel, and S stays on the chip: the outer loop runs over tiles of K and V, the inner one over tiles of Q.

The softmax of a row is computed tile by tile. A larger maximum rescales what was summed before by exp(old maximum - new
maximum). A block has one head. It keeps a tile of K and V; for each tile of Q it loads row_max, row_sum and O, adds its
part, and stores them again. (Dao and others, FlashAttention, 2022, algorithm 1.)

Costs per head, if queries and keys are multiples of the tile and none is masked:

    queries * keys / BN * HEAD / 4                  vectors of Q loaded
    2 * keys * HEAD / 4                             vectors of K and V loaded
    queries * keys / BN * HEAD / 4                  vectors of O loaded
    queries * (keys / BN + 1) * HEAD / 4            vectors of O stored
    (BM * Q_ROW + BN * Q_ROW + BN * HEAD + BM * P_ROW) * 4      bytes of shared memory per block

Limited by traffic of O, which is loaded and stored once per tile of keys, and by the grid, with one block per head.
`s03_q_outer` swaps the loops.

Parts: `load_four_or_zeros`, `store_four_within` of `labkit.parts.fours`, whose ALIGNED the launch sets by
`specialise_alignment`; `block_index` reads the block's indices, also in a grid that `kernel_and_grid` made flat, since
it has more than 65,535 blocks along y.
"""

from math import inf, log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import block_index, kernel_and_grid
from labkit.attention.operands import are_aligned, as_matrices, size_arguments
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.fours import load_four_or_zeros, store_four_within
from labkit.parts.vector_widths import specialise_alignment

FORMATS = (FP32,)
BM, BN = 64, 32  # queries and keys of a tile
HEAD = 64  # columns of a tile: head_dim, padded with zeros
LINE = 64  # columns that a row of threads loads at a time
Q_ROW = HEAD + 4  # of Q and of K in shared memory: eight neighbouring rows are in different banks
P_ROW = BN + 16  # two neighbouring rows are in different banks
SIDE = 16  # threads along a row
ROWS, COLS = BM // 8, BN // SIDE  # scores of a thread
VECTORS = HEAD // LINE  # of four columns of O, of a thread
O_COLS = 4 * VECTORS
THREADS = 128
K_BYTE = BM * Q_ROW * 4
V_BYTE = K_BYTE + BN * Q_ROW * 4
P_BYTE = V_BYTE + BN * HEAD * 4
SHARED_BYTES = P_BYTE + BM * P_ROW * 4
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit(launch_bounds=THREADS)
def kv_outer(Q, K, V, O, lse, row_maxima, row_sums, strides, num_keys, heads_per_kv, window, scale):
    Q_tile = ptx.shared_array(0, (BM, Q_ROW), np.float32)
    K_tile = ptx.shared_array(K_BYTE, (BN, Q_ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (BN, HEAD), np.float32)
    P_tile = ptx.shared_array(P_BYTE, (BM, P_ROW), np.float32)
    scores = cuda.local.array((ROWS, COLS), np.float32)
    acc = cuda.local.array((ROWS, O_COLS), np.float32)
    row_max = cuda.local.array(ROWS, np.float32)
    row_sum = cuda.local.array(ROWS, np.float32)
    q = cuda.local.array(4, np.float32)
    k = cuda.local.array((COLS, 4), np.float32)
    p = cuda.local.array((ROWS, 4), np.float32)
    v = cuda.local.array(4, np.float32)
    num_queries, thread = np.int32(lse.shape[2]), np.int32(cuda.threadIdx.x)
    head, batch, _ = block_index(lse.shape[1], lse.shape[0])
    x, y = np.int32(thread % SIDE), np.int32(thread // 32 * (BM // 4) + thread // SIDE % 2)  # its rows: y, y + 2, ...
    q_row = np.int32(batch * strides[0][0] + head * strides[0][1])
    k_row = np.int32(batch * strides[1][0] + head // heads_per_kv * strides[1][1])
    v_row = np.int32(batch * strides[2][0] + head // heads_per_kv * strides[2][1])
    o_row = np.int32(batch * strides[3][0] + head * strides[3][1])
    lowest, highest = window  # of j - i: query i sees the keys j between them
    zero = np.float32(0)
    # -- clear O, row_max and row_sum of every row --
    for q0 in range(0, num_queries, BM):
        for i in range(ROWS):
            row = q0 + y + i * 2
            if row < num_queries:
                for j in range(VECTORS):
                    store_four_within(O, o_row + row * strides[3][2], j * LINE + x * 4, zero, zero, zero, zero)
                if x == 0:
                    row_maxima[batch, head, row], row_sums[batch, head, row] = -inf, 0
    for k0 in range(max(0, lowest // BN * BN), min(num_keys, num_queries + highest), BN):
        # -- load K and V tile --
        cuda.syncthreads()  # all warps are done with the previous tiles
        for n in range(thread, BN * HEAD // 4, THREADS):
            row, col = n // (HEAD // 4), n % (HEAD // 4) * 4
            a = b = c = d = np.float32(0)
            if k0 + row < num_keys:
                a, b, c, d = load_four_or_zeros(K, k_row + (k0 + row) * strides[1][2], col)
            ptx.store4(K_tile, (row, col), a, b, c, d)
            if k0 + row < num_keys:
                a, b, c, d = load_four_or_zeros(V, v_row + (k0 + row) * strides[2][2], col)
            ptx.store4(V_tile, (row, col), a, b, c, d)
        last_key = min(k0 + BN, num_keys) - 1
        for q0 in range(max(0, (k0 - highest) // BM * BM), min(num_queries, last_key - lowest + 1), BM):
            # -- load Q tile --
            cuda.syncthreads()  # all are done with the previous tile, and see its stores
            for n in range(thread, BM * HEAD // 4, THREADS):
                row, col = n // (HEAD // 4), n % (HEAD // 4) * 4
                a = b = c = d = np.float32(0)
                if q0 + row < num_queries:
                    a, b, c, d = load_four_or_zeros(Q, q_row + (q0 + row) * strides[0][2], col)
                ptx.store4(Q_tile, (row, col), a * scale, b * scale, c * scale, d * scale)
            cuda.syncthreads()
            # -- S = Q K^T --
            for i in range(ROWS):
                for j in range(COLS):
                    scores[i, j] = 0
            for d in range(0, HEAD, 4):
                for j in range(COLS):
                    k[j, 0], k[j, 1], k[j, 2], k[j, 3] = ptx.load4(K_tile, (x + j * SIDE, d))
                for i in range(ROWS):
                    q[0], q[1], q[2], q[3] = ptx.load4(Q_tile, (y + i * 2, d))
                    for j in range(COLS):
                        for e in range(4):
                            scores[i, j] += q[e] * k[j, e]
            # -- mask --
            for i in range(ROWS):
                for j in range(COLS):
                    row, col = q0 + y + i * 2, k0 + x + j * SIDE
                    if col < row + lowest or col > row + highest or col >= num_keys:
                        scores[i, j] = -inf
            # -- update row_max, row_sum; load O and rescale it --
            for i in range(ROWS):
                row, old_max = q0 + y + i * 2, np.float32(-inf)
                row_max[i], row_sum[i] = old_max, 0
                if row < num_queries:
                    row_max[i], row_sum[i] = row_maxima[batch, head, row], row_sums[batch, head, row]
                    old_max = row_max[i]
                for j in range(COLS):
                    row_max[i] = max(row_max[i], scores[i, j])
                for n in range(4):
                    row_max[i] = max(row_max[i], cuda.shfl_xor_sync(0xFFFFFFFF, row_max[i], 1 << n))
                safe_max, thread_sum = np.float32(0) if row_max[i] == np.float32(-inf) else row_max[i], np.float32(0)
                for j in range(COLS):
                    scores[i, j] = ptx.exp2(scores[i, j] - safe_max)
                    thread_sum += scores[i, j]
                for n in range(4):
                    thread_sum += cuda.shfl_xor_sync(0xFFFFFFFF, thread_sum, 1 << n)
                old_sum = ptx.exp2(old_max - safe_max) * row_sum[i]
                row_sum[i] = old_sum + thread_sum
                recip = np.float32(0) if row_sum[i] == np.float32(0) else np.float32(1) / row_sum[i]
                for j in range(COLS):
                    P_tile[y + i * 2, x + j * SIDE] = scores[i, j] * recip
                for j in range(VECTORS):
                    a = b = c = d = zero
                    if row < num_queries:
                        a, b, c, d = load_four_or_zeros(O, o_row + row * strides[3][2], j * LINE + x * 4)
                    acc[i, j * 4], acc[i, j * 4 + 1] = a * old_sum * recip, b * old_sum * recip
                    acc[i, j * 4 + 2], acc[i, j * 4 + 3] = c * old_sum * recip, d * old_sum * recip
            # -- acc += P V --
            cuda.syncwarp()
            for col in range(0, BN, 4):
                for i in range(ROWS):
                    p[i, 0], p[i, 1], p[i, 2], p[i, 3] = ptx.load4(P_tile, (y + i * 2, col))
                for n in range(4):
                    for j in range(VECTORS):
                        v[0], v[1], v[2], v[3] = ptx.load4(V_tile, (col + n, j * LINE + x * 4))
                        for i in range(ROWS):
                            for e in range(4):
                                acc[i, j * 4 + e] += p[i, n] * v[e]
            # -- store O, row_max and row_sum --
            for i in range(ROWS):
                row = q0 + y + i * 2
                if row < num_queries:
                    for j in range(0, O_COLS, 4):
                        a, b, c, d = acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3]
                        store_four_within(O, o_row + row * strides[3][2], j * SIDE + x * 4, a, b, c, d)
                    if x == 0:
                        row_maxima[batch, head, row], row_sums[batch, head, row] = row_max[i], row_sum[i]
    # -- store log-sum-exp --
    cuda.syncthreads()
    for row in range(thread, num_queries, THREADS):
        lse[batch, head, row] = row_maxima[batch, head, row] * LN_2 + log(row_sums[batch, head, row])


def launches(Q, K, V, O, lse, problem, workspace):
    """O and log-sum-exp; maximum and sum of each row are in the workspace meanwhile."""
    problem.check(Q, K, V, O, lse)
    (Q, K, V, O), strides = as_matrices(problem, Q, K, V, O)  # of batch, head and position, in rows, per array
    head = -(-problem.head_dim // LINE) * LINE
    kernel = specialise_alignment(kv_outer, aligned=are_aligned(Q, K, V, O), HEAD=head)
    row_stats = (workspace.array(role, problem.shapes["lse"], np.float32) for role in ("maximum", "sum"))
    arguments = Q, K, V, O, lse, *row_stats, strides, *size_arguments(problem), np.float32(problem.factor) * LOG2_E
    shared_bytes = ((BM + BN) * (head + 4) + BN * head + BM * P_ROW) * 4
    return [Launch(*kernel_and_grid(kernel, (problem.heads, problem.batch)), THREADS, arguments, shared_bytes)]
