"""Tensor cores: weights and their gradients become the left operands of the second products where they are.

A warp has 16 rows of keys or more, and multiplies by `mma.sync`. It computes scores of keys by queries, S^T = K Q^T,
and dP^T = V dO^T, since P^T and dS^T are what dV = P^T dO and dK = dS^T Q begin with: a lane holds the elements of
the one product that it must hold for the other, rounds them, and packs them in pairs. The kernel for dQ has queries
for rows, and S and dP as they are. Q, dO and K are read by `ldmatrix` for the first products, and by `ldmatrix.trans`
for the second ones. Wide heads have more sums than registers, so that two blocks take half of the columns of dK and dV
each, and both make the weights.

Costs, of a head of 64 numbers whose queries and keys are multiples of the tiles, all of them seen:

    2 * queries * HEAD / 8                          vectors of O and dO loaded for delta
    2 * keys * HEAD * (1 + queries / BM) / 8        vectors loaded for dK and dV
    2 * queries * HEAD * (1 + keys / BM) / 8        vectors loaded for dQ
    (2 * BM + 2 * BN) * HEAD * 2                    bytes of shared memory per block

Limited by waiting: a block loads two tiles, waits for them, then multiplies, and memory rests meanwhile.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import divided, place_from_the_end, place_of_block, within_limits
from labkit.attention.operands import LOG2_E as LOG2_OF_E
from labkit.attention.operands import matrices
from labkit.attention.words import in_format, load_tile
from labkit.ladder import Launch

FORMAT = ptx.BF16
MI = 2  # fragments of 16 rows of a warp
WARPS = 4
THREADS = 32 * WARPS
BM, BN = 16 * MI * WARPS, 32  # rows of a block, keys for dK and dV, queries for dQ; and of a tile that passes by
HEAD = 64  # columns of a tile: head_dim and zeros
WORDS = HEAD // 2
STEPS = HEAD // 16  # of k in products over head_dim
COLS = HEAD  # of the gradients of a block
PARTS = HEAD // COLS
NI, NO = BN // 8, COLS // 8  # fragments of 8 columns of scores and of gradients
SECOND_BYTE = BM * HEAD * 2  # where the second tile of the block begins, and those that pass by
THIRD_BYTE = 2 * SECOND_BYTE
FOURTH_BYTE = THIRD_BYTE + BN * HEAD * 2
SHARED_BYTES = FOURTH_BYTE + BN * HEAD * 2
# MI and BN for dK and dV, and for dQ, by HEAD: what registers hold
TILES = {64: ((2, 32), (2, 32)), 128: ((1, 32), (2, 16)), 192: ((1, 32),) * 2, 256: ((1, 32),) * 2}
HALVED = 192, 256  # HEAD: columns of dK and dV are for two blocks
LANES, ROWS = 8, 16  # of a row of O, and rows of a block, for delta
LOG2_E = np.float32(LOG2_OF_E)


@cuda.jit(launch_bounds=LANES * ROWS)
def deltas(O, dO, delta, apart):
    """The sum of O * dO of each query, by some lanes of a warp."""
    queries, thread = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x)
    tile, head, batch = place_of_block(-(-queries // ROWS), delta.shape[1])
    row, lane = np.int32(tile * ROWS + thread // LANES), np.int32(thread % LANES)
    total = np.float32(0)
    if row < queries:
        o_row = np.int32(batch * apart[3][0] + head * apart[3][1] + row * apart[3][2])
        do_row = np.int32(batch * apart[4][0] + head * apart[4][1] + row * apart[4][2])
        for word in range(4 * lane, O.shape[1], 4 * LANES):
            o, do = ptx.load4(O, (o_row, word)), ptx.load4(dO, (do_row, word))
            for n in range(4):
                (o_low, o_high), (do_low, do_high) = ptx.unpack2(o[n], FORMAT), ptx.unpack2(do[n], FORMAT)
                total += o_low * do_low + o_high * do_high
    for n in range(3):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1 << n)
    if lane == 0 and row < queries:
        delta[batch, head, row] = total


@cuda.jit(device=True)
def multiply(scores, A_tile, y, B_tile, lane):
    """scores = A B^T of a warp's rows of A, from row y on, and the rows of B."""
    a = cuda.local.array((MI, 4), np.uint32)
    a_row, a_piece = np.uint32(lane % 16), np.uint32(lane // 16)  # where this lane's row of a matrix begins
    b_row, b_piece = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                scores[i, j, n] = 0
    for step in range(STEPS):
        for i in range(MI):
            at = np.uint32(y + i * 16 + a_row), np.uint32((step * 2 + a_piece ^ a_row % 8) * 4)
            a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(A_tile, at)
        for j in range(0, NI, 2):
            at = np.uint32(j * 8 + b_row), np.uint32((step * 2 + b_piece ^ b_row % 8) * 4)
            b0, b1, b2, b3 = ptx.ldmatrix4(B_tile, at)
            for i in range(MI):
                ptx.mma(scores, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                ptx.mma(scores, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)


@cuda.jit(device=True)
def hide(weights, top, left, lowest, highest, length, lane):
    """Takes away weights of a warp's rows, from `top` on: of columns that a row does not see, from `left` on."""
    for i in range(MI):
        for r in range(2):
            row = np.int32(top + i * 16 + r * 8 + lane // 4)
            start, end = np.int32(row + lowest), np.int32(min(row + highest, length - 1))
            for j in range(NI):
                for n in range(2):
                    col = np.int32(left + j * 8 + lane % 4 * 2 + n)
                    if col < start or col > end:
                        weights[i, j, 2 * r + n] = 0


@cuda.jit(device=True)
def add(sums, scores, B_tile, first, lane):
    """sums += scores B, of columns of B from piece `first` on; what the scores became is rounded."""
    a = cuda.local.array((MI, 4), np.uint32)
    b_row, b_piece = np.uint32(lane % 16), np.uint32(lane // 16)
    for step in range(NI // 2):
        for i in range(MI):
            for n in range(2):
                j = step * 2 + n
                a[i, 2 * n] = ptx.pack2(scores[i, j, 0], scores[i, j, 1], FORMAT)
                a[i, 2 * n + 1] = ptx.pack2(scores[i, j, 2], scores[i, j, 3], FORMAT)
        for j in range(0, NO, 2):
            at = np.uint32(step * 16 + b_row), np.uint32((first + j + b_piece ^ b_row % 8) * 4)
            b0, b1, b2, b3 = ptx.ldmatrix4_transposed(B_tile, at)
            for i in range(MI):
                ptx.mma(sums, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                ptx.mma(sums, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)


@cuda.jit(device=True)
def put(X, sums, first_row, apart, top, length, word, factor, lane):
    """Stores a warp's rows of a gradient, from position `top` on, and its columns, from a word on."""
    for i in range(MI):
        for r in range(2):
            row = np.int32(top + i * 16 + r * 8 + lane // 4)
            if row < length:
                at = np.uint32(first_row + row * apart)
                for j in range(NO):
                    place = np.uint32(word + j * 4 + lane % 4)
                    if place < X.shape[1]:
                        X[at, place] = ptx.pack2(sums[i, j, 2 * r] * factor, sums[i, j, 2 * r + 1] * factor, FORMAT)


@cuda.jit(launch_bounds=THREADS)
def mma(Q, K, V, dO, lse, delta, dK, dV, apart, keys, group, band, scale):
    """dK and dV: a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (BM, WORDS), np.uint32)
    V_tile = ptx.shared_array(SECOND_BYTE, (BM, WORDS), np.uint32)
    Q_tile = ptx.shared_array(THIRD_BYTE, (BN, WORDS), np.uint32)
    dO_tile = ptx.shared_array(FOURTH_BYTE, (BN, WORDS), np.uint32)
    weights = cuda.local.array((MI, NI, 4), np.float32)
    slopes = cuda.local.array((MI, NI, 4), np.float32)
    of_keys = cuda.local.array((MI, NO, 4), np.float32)
    of_values = cuda.local.array((MI, NO, 4), np.float32)
    queries, thread = np.int32(lse.shape[2]), np.uint32(cuda.threadIdx.x)
    kv_heads, _ = divided(lse.shape[1], group)
    tile, own, batch = place_of_block(-(-keys // BM) * PARTS, kv_heads)
    left, part = np.int32(tile // PARTS * BM), np.uint32(tile % PARTS)
    lane, y = np.uint32(thread % 32), np.uint32(thread // 32 * (16 * MI))
    k_row = np.int32(batch * apart[1][0] + own * apart[1][1])
    v_row = np.int32(batch * apart[2][0] + own * apart[2][1])
    lowest, highest = band

    load_tile(K_tile, K, k_row, apart[1][2], left, keys, thread, THREADS)
    load_tile(V_tile, V, v_row, apart[2][2], left, keys, thread, THREADS)
    for i in range(MI):
        for j in range(NO):
            for n in range(4):
                of_keys[i, j, n] = of_values[i, j, n] = 0
    last = np.int32(min(left + BM, keys) - 1)
    first, behind = np.int32(max(0, (left - highest) // BN * BN)), np.int32(min(queries, last - lowest + 1))
    for head in range(own * group, own * group + group):
        q_row = np.int32(batch * apart[0][0] + head * apart[0][1])
        do_row = np.int32(batch * apart[4][0] + head * apart[4][1])
        for top in range(first, behind, BN):
            cuda.syncthreads()  # all have done with the tiles before
            load_tile(Q_tile, Q, q_row, apart[0][2], top, queries, thread, THREADS)
            load_tile(dO_tile, dO, do_row, apart[4][2], top, queries, thread, THREADS)
            cuda.syncthreads()
            multiply(weights, K_tile, y, Q_tile, lane)
            multiply(slopes, V_tile, y, dO_tile, lane)
            for j in range(NI):
                for n in range(2):
                    row = np.int32(top + j * 8 + lane % 4 * 2 + n)
                    logarithm = of_row = np.float32(0)
                    if row < queries:
                        logarithm, of_row = lse[batch, head, row] * LOG2_E, delta[batch, head, row]
                    for i in range(MI):
                        for at in range(n, 4, 2):
                            weights[i, j, at] = ptx.exp2(weights[i, j, at] * scale * LOG2_E - logarithm)
                            slopes[i, j, at] -= of_row
            if left < top + BN - 1 + lowest or last > top + highest or top + BN > queries:
                hide(weights, left + y, top, -highest, -lowest, queries, lane)
            for i in range(MI):
                for j in range(NI):
                    for n in range(4):
                        slopes[i, j, n] *= weights[i, j, n]
            add(of_values, weights, dO_tile, part * NO, lane)
            add(of_keys, slopes, Q_tile, part * NO, lane)
    dk_row = np.int32(batch * apart[6][0] + own * apart[6][1])
    dv_row = np.int32(batch * apart[7][0] + own * apart[7][1])
    put(dK, of_keys, dk_row, apart[6][2], left + y, keys, part * (COLS // 2), scale, lane)
    put(dV, of_values, dv_row, apart[7][2], left + y, keys, part * (COLS // 2), np.float32(1), lane)


@cuda.jit(launch_bounds=THREADS)
def of_queries(Q, K, V, dO, lse, delta, dQ, apart, keys, group, band, scale):
    """dQ: a block has a tile of queries."""
    Q_tile = ptx.shared_array(0, (BM, WORDS), np.uint32)
    dO_tile = ptx.shared_array(SECOND_BYTE, (BM, WORDS), np.uint32)
    K_tile = ptx.shared_array(THIRD_BYTE, (BN, WORDS), np.uint32)
    V_tile = ptx.shared_array(FOURTH_BYTE, (BN, WORDS), np.uint32)
    weights = cuda.local.array((MI, NI, 4), np.float32)
    slopes = cuda.local.array((MI, NI, 4), np.float32)
    sums = cuda.local.array((MI, NO, 4), np.float32)
    logarithm = cuda.local.array((MI, 2), np.float32)
    of_row = cuda.local.array((MI, 2), np.float32)
    queries, thread = np.int32(lse.shape[2]), np.uint32(cuda.threadIdx.x)
    tile, head, batch = place_from_the_end(-(-queries // BM), lse.shape[1])  # where it is causal these take longest
    top = np.int32(tile * BM)
    lane, y = np.uint32(thread % 32), np.uint32(thread // 32 * (16 * MI))
    q_row = np.int32(batch * apart[0][0] + head * apart[0][1])
    do_row = np.int32(batch * apart[4][0] + head * apart[4][1])
    k_row = np.int32(batch * apart[1][0] + head // group * apart[1][1])
    v_row = np.int32(batch * apart[2][0] + head // group * apart[2][1])
    lowest, highest = band

    load_tile(Q_tile, Q, q_row, apart[0][2], top, queries, thread, THREADS)
    load_tile(dO_tile, dO, do_row, apart[4][2], top, queries, thread, THREADS)
    for i in range(MI):
        for r in range(2):
            row = np.int32(top + y + i * 16 + r * 8 + lane // 4)
            logarithm[i, r] = of_row[i, r] = 0
            if row < queries:
                logarithm[i, r], of_row[i, r] = lse[batch, head, row] * LOG2_E, delta[batch, head, row]
        for j in range(NO):
            for n in range(4):
                sums[i, j, n] = 0
    bottom = np.int32(min(top + BM, queries) - 1)
    for left in range(max(0, (top + lowest) // BN * BN), min(keys, bottom + highest + 1), BN):
        cuda.syncthreads()  # all have done with the tiles before
        load_tile(K_tile, K, k_row, apart[1][2], left, keys, thread, THREADS)
        load_tile(V_tile, V, v_row, apart[2][2], left, keys, thread, THREADS)
        cuda.syncthreads()
        multiply(weights, Q_tile, y, K_tile, lane)
        multiply(slopes, dO_tile, y, V_tile, lane)
        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    weights[i, j, n] = ptx.exp2(weights[i, j, n] * scale * LOG2_E - logarithm[i, n // 2])
        if left < bottom + lowest or left + BN - 1 > top + highest or left + BN > keys:
            hide(weights, top + y, left, lowest, highest, keys, lane)
        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    slopes[i, j, n] = weights[i, j, n] * (slopes[i, j, n] - of_row[i, n // 2])
        add(sums, slopes, K_tile, 0, lane)
    dq_row = np.int32(batch * apart[5][0] + head * apart[5][1])
    put(dQ, sums, dq_row, apart[5][2], top + y, queries, 0, scale, lane)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, format, workspace):
    """dQ, dK and dV; delta is in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV, dtype=format.dtype)
    (Q, K, V, O, dO, dQ, dK, dV), apart = matrices(problem, Q, K, V, O, dO, dQ, dK, dV, words=True)
    queries, heads, batch = problem.queries, problem.heads, problem.batch
    delta = workspace.array("delta", (batch, heads, queries), np.float32)
    head = -(-problem.head_dim // 64) * 64
    parts = 2 if head in HALVED else 1
    (fragments, bn), (fragments_of_queries, bn_of_queries) = TILES[head]
    of_keys = in_format(mma, format, MI=fragments, BN=bn, HEAD=head, COLS=head // parts)
    of_rows = in_format(of_queries, format, MI=fragments_of_queries, BN=bn_of_queries, HEAD=head)
    sizes = np.int32(problem.keys), np.int32(problem.group), tuple(map(np.int32, problem.band))
    of_all = apart, *sizes, np.float32(problem.factor)
    bm, bm_of_queries = (16 * WARPS * count for count in (fragments, fragments_of_queries))
    by_keys = -(-problem.keys // bm) * parts, problem.kv_heads, batch
    by_queries = -(-queries // bm_of_queries), heads, batch
    by_rows = -(-queries // ROWS), heads, batch
    shared_bytes = 4 * (bm + bn) * head, 4 * (bm_of_queries + bn_of_queries) * head
    given = Q, K, V, dO, lse, delta
    return [
        Launch(*within_limits(in_format(deltas, format), by_rows), LANES * ROWS, (O, dO, delta, apart)),
        Launch(*within_limits(of_keys, by_keys), THREADS, (*given, dK, dV, *of_all), shared_bytes[0]),
        Launch(*within_limits(of_rows, by_queries), THREADS, (*given, dQ, *of_all), shared_bytes[1]),
    ]
