"""Tensor cores: P becomes the left operand of the second GEMM in the registers where S was computed.

A warp has 16 rows of queries or more, and multiplies by `mma.sync`. Lane 4 g + t has columns 2 t and 2 t + 1 of rows g
and g + 8 of S. The left operand of P V needs exactly these elements in this lane: they are rounded and packed in pairs,
and P never crosses shared memory. Four lanes share a row, so that two shuffles find its maximum. V is loaded by
`ldmatrix.trans`, since its rows run along k.

Any number near the maximum can replace it. So ref_max moves, and O is rescaled, only if the maximum has risen by more
than a factor of 2^8, which is rare. (Zadouri, Hoehnerbach, Shah and others, FlashAttention-4, on rescaling.)

Costs per head, if queries and keys are multiples of the tile and none is masked:

    queries * HEAD / 8                              vectors of Q loaded
    2 * queries * keys * HEAD / BM / 8              vectors of K and V loaded
    (BM + 2 * BN) * HEAD * 2                        bytes of shared memory per block
    0                                               bank conflicts per block

Limited by latency: a block loads a tile of K and V, waits for it, then multiplies, while memory is idle.
"""

from math import inf, log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import block_from_end, kernel_and_grid
from labkit.attention.operands import SIGNS, as_matrices, exp2_scale, size_arguments
from labkit.attention.words import load_tile, specialise_format
from labkit.ladder import Launch

FORMAT = ptx.BF16
SIGN_BITS = 0  # bits that flip the signs of a word of Q
RESCALE_ABOVE = np.float32(8)  # of a maximum, as an exponent of 2, above which O is rescaled
MI = 2  # fragments of 16 rows of a warp
WARPS = 4
BM, BN = 16 * MI * WARPS, 64  # queries and keys of a tile
HEAD = 64  # columns of a tile: head_dim, padded with zeros
WORDS, STEPS = HEAD // 2, HEAD // 16  # of a row, and of k in Q K^T
NI, NO = BN // 8, HEAD // 8  # fragments of 8 columns of scores and of O
THREADS = 32 * WARPS
K_BYTE = BM * HEAD * 2
V_BYTE = K_BYTE + BN * HEAD * 2
SHARED_BYTES = V_BYTE + BN * HEAD * 2
LN_2 = np.float32(0.6931471805599453)
TILES = {64: (2, 64), 128: (2, 32), 192: (1, 32), 256: (1, 32)}  # MI and BN by HEAD: limited by registers


@cuda.jit(launch_bounds=THREADS)
def mma(Q, K, V, O, lse, strides, num_keys, heads_per_kv, window, scale):
    Q_tile = ptx.shared_array(0, (BM, WORDS), np.uint32)
    K_tile = ptx.shared_array(K_BYTE, (BN, WORDS), np.uint32)
    V_tile = ptx.shared_array(V_BYTE, (BN, WORDS), np.uint32)
    scores = cuda.local.array((MI, NI, 4), np.float32)
    acc = cuda.local.array((MI, NO, 4), np.float32)
    ref_max = cuda.local.array((MI, 2), np.float32)
    alpha = cuda.local.array((MI, 2), np.float32)
    row_sum = cuda.local.array((MI, 2), np.float32)
    a = cuda.local.array((MI, 4), np.uint32)
    num_queries, thread = np.int32(lse.shape[2]), np.uint32(cuda.threadIdx.x)
    tile, head, batch = block_from_end(-(-num_queries // BM), lse.shape[1])  # causal: these take longest
    q0 = np.int32(tile * BM)
    lane, y = np.uint32(thread % 32), np.uint32(thread // 32 * (16 * MI))
    g, t = np.uint32(lane // 4), np.uint32(lane % 4)
    a_row, a_vec = np.uint32(lane % 16), np.uint32(lane // 16)  # where this lane's row of a matrix starts
    b_row, b_vec = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    q_row = np.int32(batch * strides[0][0] + head * strides[0][1])
    k_row = np.int32(batch * strides[1][0] + head // heads_per_kv * strides[1][1])
    v_row = np.int32(batch * strides[2][0] + head // heads_per_kv * strides[2][1])
    o_row = np.int32(batch * strides[3][0] + head * strides[3][1])
    lowest, highest = window  # of j - i: query i sees the keys j between them

    load_tile(Q_tile, Q, q_row, strides[0][2], q0, num_queries, thread, THREADS)
    # -- load Q tile --
    for i in range(MI):
        for r in range(2):
            ref_max[i, r], row_sum[i, r] = -inf, 0
        for j in range(NO):
            for n in range(4):
                acc[i, j, n] = 0
    last_query = np.int32(min(q0 + BM, num_queries) - 1)
    for k0 in range(max(0, (q0 + lowest) // BN * BN), min(num_keys, last_query + highest + 1), BN):
        # -- load K and V tile --
        cuda.syncthreads()  # all warps are done with the previous tiles
        load_tile(K_tile, K, k_row, strides[1][2], k0, num_keys, thread, THREADS)
        load_tile(V_tile, V, v_row, strides[2][2], k0, num_keys, thread, THREADS)
        cuda.syncthreads()
        # -- S = Q K^T --
        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    scores[i, j, n] = 0
        for step in range(STEPS):
            for i in range(MI):
                index = np.uint32(y + i * 16 + a_row), np.uint32((step * 2 + a_vec ^ a_row % 8) * 4)
                a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(Q_tile, index)
                for n in range(4):
                    a[i, n] ^= np.uint32(SIGN_BITS)
            for j in range(0, NI, 2):
                index = np.uint32(j * 8 + b_row), np.uint32((step * 2 + b_vec ^ b_row % 8) * 4)
                b0, b1, b2, b3 = ptx.ldmatrix4(K_tile, index)
                for i in range(MI):
                    ptx.mma(scores, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                    ptx.mma(scores, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)
        # -- mask --
        if k0 < last_query + lowest or k0 + BN - 1 > q0 + highest or k0 + BN > num_keys:
            for i in range(MI):
                for r in range(2):
                    row = q0 + y + i * 16 + r * 8 + g
                    first_key, last_key = np.int32(row + lowest), np.int32(min(row + highest, num_keys - 1))
                    for j in range(NI):
                        for n in range(2):
                            col = np.int32(k0 + j * 8 + t * 2 + n)
                            if col < first_key or col > last_key:
                                scores[i, j, 2 * r + n] = -inf
        # -- update row_max, row_sum --
        min_alpha = np.float32(1)
        for i in range(MI):
            for r in range(2):
                tile_max = np.float32(-inf)
                for j in range(NI):
                    tile_max = max(tile_max, max(scores[i, j, 2 * r], scores[i, j, 2 * r + 1]))
                tile_max = max(tile_max, cuda.shfl_xor_sync(0xFFFFFFFF, tile_max, 1))
                tile_max = max(tile_max, cuda.shfl_xor_sync(0xFFFFFFFF, tile_max, 2)) * scale
                new_ref = tile_max if tile_max - ref_max[i, r] > RESCALE_ABOVE else ref_max[i, r]
                safe_ref = np.float32(0) if new_ref == np.float32(-inf) else new_ref
                alpha[i, r] = ptx.exp2(ref_max[i, r] - safe_ref)
                min_alpha = min(min_alpha, alpha[i, r])
                ref_max[i, r] = new_ref
                row_sum[i, r] *= alpha[i, r]
                for j in range(NI):
                    scores[i, j, 2 * r] = ptx.exp2(scores[i, j, 2 * r] * scale - safe_ref)
                    scores[i, j, 2 * r + 1] = ptx.exp2(scores[i, j, 2 * r + 1] * scale - safe_ref)
                    row_sum[i, r] += scores[i, j, 2 * r] + scores[i, j, 2 * r + 1]
        if cuda.any_sync(0xFFFFFFFF, min_alpha < np.float32(1)):
            for i in range(MI):
                for j in range(NO):
                    for n in range(4):
                        acc[i, j, n] *= alpha[i, n // 2]
        # -- acc += P V --
        for step in range(NI // 2):
            for i in range(MI):
                for n in range(2):
                    j = step * 2 + n
                    a[i, 2 * n] = ptx.pack2(scores[i, j, 0], scores[i, j, 1], FORMAT)
                    a[i, 2 * n + 1] = ptx.pack2(scores[i, j, 2], scores[i, j, 3], FORMAT)
            for j in range(0, NO, 2):
                index = np.uint32(step * 16 + a_row), np.uint32((j + a_vec ^ a_row % 8) * 4)
                b0, b1, b2, b3 = ptx.ldmatrix4_transposed(V_tile, index)
                for i in range(MI):
                    ptx.mma(acc, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                    ptx.mma(acc, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)
    # -- store O and log-sum-exp --
    for i in range(MI):
        for r in range(2):
            row = np.int32(q0 + y + i * 16 + g + r * 8)
            row_sum[i, r] += cuda.shfl_xor_sync(0xFFFFFFFF, row_sum[i, r], 1)
            row_sum[i, r] += cuda.shfl_xor_sync(0xFFFFFFFF, row_sum[i, r], 2)
            recip = np.float32(0) if row_sum[i, r] == np.float32(0) else np.float32(1) / row_sum[i, r]
            if row < num_queries:
                index = np.uint32(o_row + row * strides[3][2])
                for j in range(NO):
                    word = np.uint32(j * 4 + t)
                    if word < O.shape[1]:
                        O[index, word] = ptx.pack2(acc[i, j, 2 * r] * recip, acc[i, j, 2 * r + 1] * recip, FORMAT)
                if t == 0:
                    lse[batch, head, row] = ref_max[i, r] * LN_2 + log(row_sum[i, r])


def launches(Q, K, V, O, lse, problem, format):
    """O and log-sum-exp."""
    problem.check(Q, K, V, O, lse, dtype=format.dtype)
    operands, strides = as_matrices(problem, Q, K, V, O, words=True)
    head = -(-problem.head_dim // 64) * 64
    mi, bn = TILES[head]
    bm, scale = 16 * mi * WARPS, exp2_scale(problem)
    kernel = specialise_format(mma, format, SIGN_BITS=SIGNS if problem.factor < 0 else 0, MI=mi, BN=bn, HEAD=head)
    grid = -(-problem.queries // bm), problem.heads, problem.batch
    arguments = *operands, lse, strides, *size_arguments(problem), scale
    return [Launch(*kernel_and_grid(kernel, grid), THREADS, arguments, (bm + 2 * bn) * head * 2)]
