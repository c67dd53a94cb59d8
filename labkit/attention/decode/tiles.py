"""Attention of one warp to a tile of 16 keys, and the merge of partial results.

The rows of a warp's tile of scores are the queries of all heads that share a head of K, 16 at most; lane 4 g + t has
parts of rows g and g + 8. A *partial result* is what a warp has of its keys: accumulators of P V, and for each row
ref_max (the exponent of a weight of 1) and row_sum. Two partial results are merged as softmax is, after both are
rescaled to one ref_max. (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, section 3.1.)
"""

from math import log

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.attention.blocks import divmod_u32
from labkit.attention.decode.operands import BN, MASKED, THREADS, WARPS

FORMAT = ptx.BF16
SIGN_BITS = 0  # bits that flip the signs of a word of Q
HEAD = 128  # columns of a tile: head_dim, padded with zeros
WORDS, PANEL = HEAD // 2, 32  # of a row, and those of them that eight lanes copy at once
STEPS, NO = HEAD // 16, HEAD // 8  # of k in Q K^T, and fragments of 8 columns of O
RESCALE_ABOVE = np.float32(8)  # rise of a maximum, as an exponent of 2, above which accumulators are rescaled
UNROLL = 8  # partial results that a thread reads before it adds them
LN_2 = np.float32(log(2))
ALL_LANES = 0xFFFFFFFF  # mask of a shuffle


@cuda.jit(device=True)
def copy_tile(tiles, slot, X, row, stride, num_rows, lane):
    """Issue copies of a tile of 16 rows of X, from a row on; zeros past the first `num_rows`.

    16-byte vector p of row r is stored at vector p ^ (r % 8), so that `ldmatrix` has no bank conflict.
    """
    y, vec = np.uint32(lane // 8), np.uint32(lane % 8)
    first, step = np.uint64(row + lane // 8 * stride), np.uint64(4 * stride)
    for i in range(BN // 4):
        y_row = np.uint32(y + 4 * i)
        for panel in range(0, WORDS, PANEL):
            word = np.uint32(panel + vec * 4)
            index = slot, y_row, np.uint32(panel + (vec ^ y_row % 8) * 4)
            valid_bytes = VECTOR_BYTES if y_row < num_rows and word < X.shape[1] else 0
            ptx.cp_async(tiles, index, X, (first + np.uint64(i) * step, word), VECTOR_BYTES, valid_bytes)


@cuda.jit(device=True)
def copy_kv(K_tiles, V_tiles, slot, K, V, table, strides, page, batch, head, position, length, lane):
    """Issue copies of a warp's tile of K and V, from a position of a sequence on; it is within one page."""
    page_index, offset = divmod_u32(position, page)
    page_id, num_rows = table[batch, page_index], np.int32(length - position)
    k_row = np.int32(page_id * strides[1][0] + head * strides[1][1] + offset * strides[1][2])
    v_row = np.int32(page_id * strides[2][0] + head * strides[2][1] + offset * strides[2][2])
    copy_tile(K_tiles, slot, K, k_row, strides[1][2], num_rows, lane)
    copy_tile(V_tiles, slot, V, v_row, strides[2][2], num_rows, lane)


@cuda.jit(device=True)
def load_queries(q, Q, row, strides, row0, num_rows, num_queries, lane):
    """Load the fragments of 16 rows of Q, from row row0 on of those that share a head of K.

    Missing rows repeat the last one, and so do columns, which meet zeros in a tile of K.
    """
    last = np.uint32(Q.shape[1] - 1)
    for r in range(2):
        head, query = divmod_u32(min(row0 + lane // 4 + 8 * r, num_rows - 1), num_queries)
        q_row = np.uint32(row + head * strides[1] + query * strides[2])
        for step in range(STEPS):
            for half in range(2):
                word = min(np.uint32(step * 8 + half * 4 + lane % 4), last)
                q[step, 2 * half + r] = Q[q_row, word] ^ np.uint32(SIGN_BITS)


@cuda.jit(device=True)
def attend_tile(acc, ref_max, row_sum, q, K_tiles, V_tiles, slot, k0, visible, scale, lane):
    """Add the keys and values of a tile, from position k0 on, to a partial result.

    `visible` is the number of keys that each of the lane's two rows sees.
    """
    scores = cuda.local.array((2, 4), np.float32)
    alpha = cuda.local.array(2, np.float32)
    b_row, b_vec = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    a_row, a_vec = np.uint32(lane % 16), np.uint32(lane // 16)
    for j in range(2):
        for n in range(4):
            scores[j, n] = 0
    for step in range(STEPS):
        a = q[step, 0], q[step, 1], q[step, 2], q[step, 3]
        k_index = slot, b_row, np.uint32((step * 2 + b_vec ^ b_row % 8) * 4)
        b0, b1, b2, b3 = ptx.ldmatrix4(K_tiles, k_index)
        ptx.mma(scores, (0, 0), a, (b0, b1), FORMAT)
        ptx.mma(scores, (1, 0), a, (b2, b3), FORMAT)
    for j in range(2):
        for n in range(4):
            if k0 + j * 8 + lane % 4 * 2 + n % 2 >= visible[n // 2]:
                scores[j, n] = MASKED

    min_alpha = np.float32(1)
    for r in range(2):
        tile_max = max(max(scores[0, 2 * r], scores[0, 2 * r + 1]), max(scores[1, 2 * r], scores[1, 2 * r + 1]))
        tile_max = max(tile_max, cuda.shfl_xor_sync(ALL_LANES, tile_max, 1))
        tile_max = max(tile_max, cuda.shfl_xor_sync(ALL_LANES, tile_max, 2)) * scale
        new_ref = tile_max if tile_max - ref_max[r] > RESCALE_ABOVE else ref_max[r]
        safe_ref = np.float32(0) if new_ref == MASKED else new_ref
        alpha[r] = ptx.exp2(ref_max[r] - safe_ref)
        min_alpha = min(min_alpha, alpha[r])
        ref_max[r] = new_ref
        row_sum[r] *= alpha[r]
        for j in range(2):
            for n in range(2 * r, 2 * r + 2):
                scores[j, n] = ptx.exp2(scores[j, n] * scale - safe_ref)
                row_sum[r] += scores[j, n]
    if cuda.any_sync(ALL_LANES, min_alpha < np.float32(1)):
        for j in range(NO):
            for n in range(4):
                acc[j, n] *= alpha[n // 2]

    a0, a1 = ptx.pack2(scores[0, 0], scores[0, 1], FORMAT), ptx.pack2(scores[0, 2], scores[0, 3], FORMAT)
    a2, a3 = ptx.pack2(scores[1, 0], scores[1, 1], FORMAT), ptx.pack2(scores[1, 2], scores[1, 3], FORMAT)
    for j in range(0, NO, 2):
        v_index = slot, a_row, np.uint32((j + a_vec ^ a_row % 8) * 4)
        b0, b1, b2, b3 = ptx.ldmatrix4_transposed(V_tiles, v_index)
        ptx.mma(acc, (j, 0), (a0, a1, a2, a3), (b0, b1), FORMAT)
        ptx.mma(acc, (j + 1, 0), (a0, a1, a2, a3), (b2, b3), FORMAT)


@cuda.jit(device=True)
def store_partial(results, index, acc, ref_max, row_sum, lane):
    """Store a warp's partial result: of each row HEAD accumulators, then ref_max and row_sum."""
    for r in range(2):
        row = np.uint32(lane // 4 + 8 * r)
        row_sum[r] += cuda.shfl_xor_sync(ALL_LANES, row_sum[r], 1)
        row_sum[r] += cuda.shfl_xor_sync(ALL_LANES, row_sum[r], 2)
        for j in range(NO):
            ptx.store2(results, (index, row, np.uint32(j * 8 + lane % 4 * 2)), acc[j, 2 * r], acc[j, 2 * r + 1])
        if lane % 4 == 0:
            ptx.store2(results, (index, row, HEAD), ref_max[r], row_sum[r])


@cuda.jit(device=True)
def merge_partials(results, first, end, row, col):
    """Merge four columns of a row of partial results, always in their order: ref_max, row_sum, and the columns."""
    ref_maxes = cuda.local.array(UNROLL, np.float32)
    row_sums = cuda.local.array(UNROLL, np.float32)
    values = cuda.local.array((UNROLL, 4), np.float32)
    ref_max, row_sum, a, b, c, d = MASKED, np.float32(0), np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for start in range(first, end, UNROLL):
        new_max = ref_max
        for n in range(UNROLL):
            ref_maxes[n] = MASKED
            row_sums[n] = values[n, 0] = values[n, 1] = values[n, 2] = values[n, 3] = 0
            if start + n < end:
                ref_maxes[n], row_sums[n] = ptx.load2(results, (start + n, row, HEAD))
                values[n, 0], values[n, 1], values[n, 2], values[n, 3] = ptx.load4(results, (start + n, row, col))
            new_max = max(new_max, ref_maxes[n])
        safe_max = np.float32(0) if new_max == MASKED else new_max
        alpha = ptx.exp2(ref_max - safe_max)
        row_sum, a, b, c, d = row_sum * alpha, a * alpha, b * alpha, c * alpha, d * alpha
        for n in range(UNROLL):
            alpha = ptx.exp2(ref_maxes[n] - safe_max)
            row_sum += row_sums[n] * alpha
            a += values[n, 0] * alpha
            b += values[n, 1] * alpha
            c += values[n, 2] * alpha
            d += values[n, 3] * alpha
        ref_max = new_max
    return ref_max, row_sum, a, b, c, d


@cuda.jit(device=True)
def combine_warps(results, index, partials, num_rows, thread):
    """Merge the partial results of a block's warps, and store `num_rows` rows."""
    for n in range(thread * 4, num_rows * HEAD, THREADS * 4):
        row, col = np.int32(n // HEAD), np.int32(n % HEAD)
        ref_max, row_sum, a, b, c, d = merge_partials(partials, 0, WARPS, row, col)
        ptx.store4(results, (index, row, col), a, b, c, d)
        if col == 0:
            ptx.store2(results, (index, row, HEAD), ref_max, row_sum)


@cuda.jit(device=True)
def write_o(O, lse, results, first, end, row, col, o_row, strides, batch, first_head, kv_row):
    """Merge four columns of a row of partial results, and store O, and once per row log-sum-exp."""
    ref_max, row_sum, a, b, c, d = merge_partials(results, first, end, row, col)
    recip = np.float32(0) if row_sum == np.float32(0) else np.float32(1) / row_sum
    (head, query), word = divmod_u32(kv_row, lse.shape[2]), np.uint32(col // 2)
    at = np.uint32(o_row + head * strides[1] + query * strides[2])
    if word < O.shape[1]:
        ptx.store2(O, (at, word), ptx.pack2(a * recip, b * recip, FORMAT), ptx.pack2(c * recip, d * recip, FORMAT))
    if col == 0:
        lse[batch, first_head + head, query] = ref_max * LN_2 + log(row_sum)
