"""The outer loop runs over tiles of Q: row_max, row_sum and O stay in registers, and O is divided and stored once.

A block has a tile of queries, and loops over tiles of K and V. A larger maximum rescales O; row_sum divides it only at
the end. A warp has whole rows of scores, and needs no other warp between its two GEMMs. (Dao, FlashAttention-2,
2023, algorithm 1 and section 3.3.)

Costs per head, if queries and keys are multiples of the tile and none is masked:

    queries * HEAD / 4                              vectors of Q loaded
    2 * queries * keys * HEAD / BM / 4              vectors of K and V loaded
    queries * HEAD / 4                              vectors of O stored
    (BM * Q_ROW + BN * Q_ROW + BN * HEAD + BM * P_ROW) * 4      bytes of shared memory per block

Limited by the CUDA cores, which are a sixteenth as fast as tensor cores, and by shared memory. `s04_mma` uses those.

Parts: `load_four_or_zeros`, `store_four_within` of `labkit.parts.fours`, whose ALIGNED the launch sets by
`specialise_alignment`.
"""

from math import inf, log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import block_from_end, kernel_and_grid
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
SIZES = (64, 32), (32, 16), (16, 16)  # BM and BN: the first that fit in the shared memory of a block
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit(launch_bounds=THREADS)
def q_outer(Q, K, V, O, lse, strides, num_keys, heads_per_kv, window, scale):
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
    tile, head, batch = block_from_end(-(-num_queries // BM), lse.shape[1])  # causal: these take longest
    q0 = np.int32(tile * BM)
    x, y = np.int32(thread % SIDE), np.int32(thread // 32 * (BM // 4) + thread // SIDE % 2)  # its rows: y, y + 2, ...
    q_row = np.int32(batch * strides[0][0] + head * strides[0][1])
    k_row = np.int32(batch * strides[1][0] + head // heads_per_kv * strides[1][1])
    v_row = np.int32(batch * strides[2][0] + head // heads_per_kv * strides[2][1])
    o_row = np.int32(batch * strides[3][0] + head * strides[3][1])
    lowest, highest = window  # of j - i: query i sees the keys j between them
    # -- load Q tile --
    for n in range(thread, BM * HEAD // 4, THREADS):
        row, col = n // (HEAD // 4), n % (HEAD // 4) * 4
        a = b = c = d = np.float32(0)
        if q0 + row < num_queries:
            a, b, c, d = load_four_or_zeros(Q, q_row + (q0 + row) * strides[0][2], col)
        ptx.store4(Q_tile, (row, col), a * scale, b * scale, c * scale, d * scale)
    for i in range(ROWS):
        row_max[i], row_sum[i] = -inf, 0
        for j in range(O_COLS):
            acc[i, j] = 0
    last_query = min(q0 + BM, num_queries) - 1
    for k0 in range(max(0, (q0 + lowest) // BN * BN), min(num_keys, last_query + highest + 1), BN):
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
        if k0 < last_query + lowest or k0 + BN - 1 > q0 + highest or k0 + BN > num_keys:
            for i in range(ROWS):
                for j in range(COLS):
                    row, col = q0 + y + i * 2, k0 + x + j * SIDE
                    if col < row + lowest or col > row + highest or col >= num_keys:
                        scores[i, j] = -inf
        # -- update row_max, row_sum --
        for i in range(ROWS):
            new_max = row_max[i]
            for j in range(COLS):
                new_max = max(new_max, scores[i, j])
            for n in range(4):
                new_max = max(new_max, cuda.shfl_xor_sync(0xFFFFFFFF, new_max, 1 << n))
            safe_max = np.float32(0) if new_max == np.float32(-inf) else new_max
            alpha = ptx.exp2(row_max[i] - safe_max)
            row_max[i] = new_max
            row_sum[i] *= alpha
            for j in range(O_COLS):
                acc[i, j] *= alpha
            for j in range(COLS):
                weight = ptx.exp2(scores[i, j] - safe_max)
                row_sum[i] += weight
                P_tile[y + i * 2, x + j * SIDE] = weight
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
    # -- store O and log-sum-exp --
    for i in range(ROWS):
        row = q0 + y + i * 2
        for n in range(4):
            row_sum[i] += cuda.shfl_xor_sync(0xFFFFFFFF, row_sum[i], 1 << n)
        recip = np.float32(0) if row_sum[i] == np.float32(0) else np.float32(1) / row_sum[i]
        if row < num_queries:
            memory_row = o_row + row * strides[3][2]
            for j in range(0, O_COLS, 4):
                a, b, c, d = (acc[i, j] * recip, acc[i, j + 1] * recip, acc[i, j + 2] * recip, acc[i, j + 3] * recip)
                store_four_within(O, memory_row, j * SIDE + x * 4, a, b, c, d)
            if x == 0:
                lse[batch, head, row] = row_max[i] * LN_2 + log(row_sum[i])


def launches(Q, K, V, O, lse, problem):
    """O and log-sum-exp."""
    problem.check(Q, K, V, O, lse)
    (Q, K, V, O), strides = as_matrices(problem, Q, K, V, O)
    head, max_bytes = -(-problem.head_dim // LINE) * LINE, cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    for bm, bn in SIZES:
        shared_bytes = ((bm + bn) * (head + 4) + bn * head + bm * P_ROW) * 4
        if shared_bytes <= max_bytes:
            break
    kernel = specialise_alignment(q_outer, aligned=are_aligned(Q, K, V, O), HEAD=head, BM=bm, BN=bn, P_ROW=P_ROW)
    arguments = Q, K, V, O, lse, strides, *size_arguments(problem), np.float32(problem.factor) * LOG2_E
    grid = -(-problem.queries // bm), problem.heads, problem.batch
    return [Launch(*kernel_and_grid(kernel, grid), THREADS, arguments, shared_bytes)]
