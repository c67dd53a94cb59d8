"""One kernel, and scores that never leave the chip: tiles of keys are outside, tiles of queries inside.

The softmax of a row is put together tile by tile. Where a tile of keys has a larger score, what was there before
shrinks by exp(old maximum - new maximum). A block has a head; it keeps a tile of keys and of values, and for each tile
of queries reads maximum, sum and O from memory, adds its part, and writes them back. (Dao and others, FlashAttention,
2022, algorithm 1.)

Costs, of a head whose queries and keys are multiples of the tile, all of them seen:

    queries * keys / BN * HEAD / 4                  vectors of Q loaded
    2 * keys * HEAD / 4                             vectors of K and V loaded
    queries * keys / BN * HEAD / 4                  vectors of O loaded
    queries * (keys / BN + 1) * HEAD / 4            vectors of O stored
    (BM * Q_ROW + BN * Q_ROW + BN * HEAD + BM * P_ROW) * 4      bytes of shared memory per block

Limited by O, which comes and goes as often as there are tiles of keys, and by a grid of as many blocks as there are
heads. `s03_q_outer` changes the order of the loops.

Parts: `load_four_or_zeros`, `store_four_within` of `labkit.parts.fours`.
"""

from functools import cache
from math import inf, log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import place_of_block, within_limits
from labkit.attention.operands import in_pieces, matrices
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.parts.fours import load_four_or_zeros, store_four_within
from labkit.parts.vector_widths import specialise_alignment

FORMATS = (FP32,)
BM, BN = 64, 32  # queries and keys of a tile
HEAD = 64  # columns of a tile: head_dim and zeros
LINE = 64  # of them that a row of threads takes at once
Q_ROW = HEAD + 4  # of Q and of K in shared memory: eight neighbouring rows lie in different banks
P_ROW = BN + 16  # two neighbouring rows lie in different banks
SIDE = 16  # threads along a row
ROWS, COLS = BM // 8, BN // SIDE  # scores of a thread
PIECES = HEAD // LINE  # of four columns of O, of a thread
WIDE = 4 * PIECES
THREADS = 128
K_BYTE = BM * Q_ROW * 4
V_BYTE = K_BYTE + BN * Q_ROW * 4
P_BYTE = V_BYTE + BN * HEAD * 4
SHARED_BYTES = P_BYTE + BM * P_ROW * 4
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit(launch_bounds=THREADS)
def kv_outer(Q, K, V, O, lse, maxima, totals, apart, keys, group, band, scale):
    Q_tile = ptx.shared_array(0, (BM, Q_ROW), np.float32)
    K_tile = ptx.shared_array(K_BYTE, (BN, Q_ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (BN, HEAD), np.float32)
    P_tile = ptx.shared_array(P_BYTE, (BM, P_ROW), np.float32)
    scores = cuda.local.array((ROWS, COLS), np.float32)
    sums = cuda.local.array((ROWS, WIDE), np.float32)
    most = cuda.local.array(ROWS, np.float32)
    total = cuda.local.array(ROWS, np.float32)
    q = cuda.local.array(4, np.float32)
    k = cuda.local.array((COLS, 4), np.float32)
    p = cuda.local.array((ROWS, 4), np.float32)
    v = cuda.local.array(4, np.float32)
    queries, thread = np.int32(lse.shape[2]), np.int32(cuda.threadIdx.x)
    head, batch, _ = place_of_block(lse.shape[1], lse.shape[0])
    x, y = np.int32(thread % SIDE), np.int32(thread // 32 * (BM // 4) + thread // SIDE % 2)  # its rows: y, y + 2, ...
    q_row = np.int32(batch * apart[0][0] + head * apart[0][1])
    k_row = np.int32(batch * apart[1][0] + head // group * apart[1][1])
    v_row = np.int32(batch * apart[2][0] + head // group * apart[2][1])
    o_row = np.int32(batch * apart[3][0] + head * apart[3][1])
    lowest, highest = band
    zero = np.float32(0)

    for top in range(0, queries, BM):
        for i in range(ROWS):
            row = top + y + i * 2
            if row < queries:
                for j in range(PIECES):
                    store_four_within(O, o_row + row * apart[3][2], j * LINE + x * 4, zero, zero, zero, zero)
                if x == 0:
                    maxima[batch, head, row], totals[batch, head, row] = -inf, 0
    for left in range(max(0, lowest // BN * BN), min(keys, queries + highest), BN):
        cuda.syncthreads()  # all have done with the tiles before
        for n in range(thread, BN * HEAD // 4, THREADS):
            row, col = n // (HEAD // 4), n % (HEAD // 4) * 4
            a = b = c = d = np.float32(0)
            if left + row < keys:
                a, b, c, d = load_four_or_zeros(K, k_row + (left + row) * apart[1][2], col)
            ptx.store4(K_tile, (row, col), a, b, c, d)
            if left + row < keys:
                a, b, c, d = load_four_or_zeros(V, v_row + (left + row) * apart[2][2], col)
            ptx.store4(V_tile, (row, col), a, b, c, d)
        right = min(left + BN, keys) - 1
        for top in range(max(0, (left - highest) // BM * BM), min(queries, right - lowest + 1), BM):
            cuda.syncthreads()  # all have done with the tile before, and have seen what was written of its rows
            for n in range(thread, BM * HEAD // 4, THREADS):
                row, col = n // (HEAD // 4), n % (HEAD // 4) * 4
                a = b = c = d = np.float32(0)
                if top + row < queries:
                    a, b, c, d = load_four_or_zeros(Q, q_row + (top + row) * apart[0][2], col)
                ptx.store4(Q_tile, (row, col), a * scale, b * scale, c * scale, d * scale)
            cuda.syncthreads()

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
            for i in range(ROWS):
                for j in range(COLS):
                    row, col = top + y + i * 2, left + x + j * SIDE
                    if col < row + lowest or col > row + highest or col >= keys:
                        scores[i, j] = -inf

            for i in range(ROWS):
                row, before = top + y + i * 2, np.float32(-inf)
                most[i], total[i] = before, 0
                if row < queries:
                    most[i], total[i] = maxima[batch, head, row], totals[batch, head, row]
                    before = most[i]
                for j in range(COLS):
                    most[i] = max(most[i], scores[i, j])
                for n in range(4):
                    most[i] = max(most[i], cuda.shfl_xor_sync(0xFFFFFFFF, most[i], 1 << n))
                origin, own = np.float32(0) if most[i] == np.float32(-inf) else most[i], np.float32(0)
                for j in range(COLS):
                    scores[i, j] = ptx.exp2(scores[i, j] - origin)
                    own += scores[i, j]
                for n in range(4):
                    own += cuda.shfl_xor_sync(0xFFFFFFFF, own, 1 << n)
                shrunk = ptx.exp2(before - origin) * total[i]
                total[i] = shrunk + own
                share = np.float32(0) if total[i] == np.float32(0) else np.float32(1) / total[i]
                for j in range(COLS):
                    P_tile[y + i * 2, x + j * SIDE] = scores[i, j] * share
                for j in range(PIECES):
                    a = b = c = d = zero
                    if row < queries:
                        a, b, c, d = load_four_or_zeros(O, o_row + row * apart[3][2], j * LINE + x * 4)
                    sums[i, j * 4], sums[i, j * 4 + 1] = a * shrunk * share, b * shrunk * share
                    sums[i, j * 4 + 2], sums[i, j * 4 + 3] = c * shrunk * share, d * shrunk * share
            cuda.syncwarp()
            for col in range(0, BN, 4):
                for i in range(ROWS):
                    p[i, 0], p[i, 1], p[i, 2], p[i, 3] = ptx.load4(P_tile, (y + i * 2, col))
                for n in range(4):
                    for j in range(PIECES):
                        v[0], v[1], v[2], v[3] = ptx.load4(V_tile, (col + n, j * LINE + x * 4))
                        for i in range(ROWS):
                            for e in range(4):
                                sums[i, j * 4 + e] += p[i, n] * v[e]
            for i in range(ROWS):
                row = top + y + i * 2
                if row < queries:
                    for j in range(0, WIDE, 4):
                        a, b, c, d = sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3]
                        store_four_within(O, o_row + row * apart[3][2], j * SIDE + x * 4, a, b, c, d)
                    if x == 0:
                        maxima[batch, head, row], totals[batch, head, row] = most[i], total[i]

    cuda.syncthreads()
    for row in range(thread, queries, THREADS):
        lse[batch, head, row] = maxima[batch, head, row] * LN_2 + log(totals[batch, head, row])


@cache
def constants(head_dim: int) -> dict[str, int]:
    """Of the kernel, and of its launch, for a head_dim."""
    head = -(-head_dim // LINE) * LINE
    q_row, pieces = head + 4, head // LINE
    k_byte = BM * q_row * 4
    v_byte = k_byte + BN * q_row * 4
    p_byte = v_byte + BN * head * 4
    found = {"HEAD": head, "Q_ROW": q_row, "PIECES": pieces, "WIDE": 4 * pieces}
    return found | {"K_BYTE": k_byte, "V_BYTE": v_byte, "P_BYTE": p_byte, "SHARED_BYTES": p_byte + BM * P_ROW * 4}


def launches(Q, K, V, O, lse, problem, workspace):
    """O and log-sum-exp; maximum and sum of each row are in the workspace meanwhile."""
    problem.check(Q, K, V, O, lse)
    (Q, K, V, O), apart = matrices(problem, Q, K, V, O)
    known = dict(constants(problem.head_dim))
    shared_bytes = known.pop("SHARED_BYTES")
    kernel = specialise_alignment(kv_outer, in_pieces(Q, K, V, O), **known)
    sums = (workspace.array(role, problem.shapes["lse"], np.float32) for role in ("maximum", "sum"))
    scale = np.float32(problem.factor) * LOG2_E
    sizes = np.int32(problem.keys), np.int32(problem.group), tuple(map(np.int32, problem.band)), scale
    grid = problem.heads, problem.batch
    return [Launch(*within_limits(kernel, grid), THREADS, (Q, K, V, O, lse, *sums, apart, *sizes), shared_bytes)]
