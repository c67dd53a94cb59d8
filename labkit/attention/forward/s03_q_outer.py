"""Tiles of queries are outside: their maximum, sum and O stay in registers, and are divided and stored once.

A block has a tile of queries and takes tiles of keys and values one after the other. O is rescaled where a maximum
rises, and divided by the sum at the end alone. A warp has whole rows of scores, so that it needs no other warp between
its two products. (Dao, FlashAttention-2, 2023, algorithm 1 and section 3.3.)

Costs, of a head whose queries and keys are multiples of the tile, all of them seen:

    queries * HEAD / 4                              vectors of Q loaded
    2 * queries * keys * HEAD / BM / 4              vectors of K and V loaded
    queries * HEAD / 4                              vectors of O stored
    (BM * Q_ROW + BN * Q_ROW + BN * HEAD + BM * P_ROW) * 4      bytes of shared memory per block

Limited by the CUDA cores, which are a sixteenth as fast as tensor cores, and by shared memory. `s04_mma` uses those.

Parts: `load_four_or_zeros`, `store_four_within` of `labkit.parts.fours`.
"""

from functools import cache
from math import inf, log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import place_from_the_end, within_limits
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
SIZES = (64, 32), (32, 16), (16, 16)  # BM and BN: the first that the shared memory of a block holds
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit(launch_bounds=THREADS)
def q_outer(Q, K, V, O, lse, apart, keys, group, band, scale):
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
    tile, head, batch = place_from_the_end(-(-queries // BM), lse.shape[1])  # where it is causal these take longest
    top = np.int32(tile * BM)
    x, y = np.int32(thread % SIDE), np.int32(thread // 32 * (BM // 4) + thread // SIDE % 2)  # its rows: y, y + 2, ...
    q_row = np.int32(batch * apart[0][0] + head * apart[0][1])
    k_row = np.int32(batch * apart[1][0] + head // group * apart[1][1])
    v_row = np.int32(batch * apart[2][0] + head // group * apart[2][1])
    o_row = np.int32(batch * apart[3][0] + head * apart[3][1])
    lowest, highest = band

    for n in range(thread, BM * HEAD // 4, THREADS):
        row, col = n // (HEAD // 4), n % (HEAD // 4) * 4
        a = b = c = d = np.float32(0)
        if top + row < queries:
            a, b, c, d = load_four_or_zeros(Q, q_row + (top + row) * apart[0][2], col)
        ptx.store4(Q_tile, (row, col), a * scale, b * scale, c * scale, d * scale)
    for i in range(ROWS):
        most[i], total[i] = -inf, 0
        for j in range(WIDE):
            sums[i, j] = 0
    bottom = min(top + BM, queries) - 1
    for left in range(max(0, (top + lowest) // BN * BN), min(keys, bottom + highest + 1), BN):
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
        if left < bottom + lowest or left + BN - 1 > top + highest or left + BN > keys:
            for i in range(ROWS):
                for j in range(COLS):
                    row, col = top + y + i * 2, left + x + j * SIDE
                    if col < row + lowest or col > row + highest or col >= keys:
                        scores[i, j] = -inf

        for i in range(ROWS):
            highest_score = most[i]
            for j in range(COLS):
                highest_score = max(highest_score, scores[i, j])
            for n in range(4):
                highest_score = max(highest_score, cuda.shfl_xor_sync(0xFFFFFFFF, highest_score, 1 << n))
            origin = np.float32(0) if highest_score == np.float32(-inf) else highest_score
            shrunk = ptx.exp2(most[i] - origin)
            most[i] = highest_score
            total[i] *= shrunk
            for j in range(WIDE):
                sums[i, j] *= shrunk
            for j in range(COLS):
                weight = ptx.exp2(scores[i, j] - origin)
                total[i] += weight
                P_tile[y + i * 2, x + j * SIDE] = weight
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
        for n in range(4):
            total[i] += cuda.shfl_xor_sync(0xFFFFFFFF, total[i], 1 << n)
        share = np.float32(0) if total[i] == np.float32(0) else np.float32(1) / total[i]
        if row < queries:
            at = o_row + row * apart[3][2]
            for j in range(0, WIDE, 4):
                a, b, c, d = sums[i, j] * share, sums[i, j + 1] * share, sums[i, j + 2] * share, sums[i, j + 3] * share
                store_four_within(O, at, j * SIDE + x * 4, a, b, c, d)
            if x == 0:
                lse[batch, head, row] = most[i] * LN_2 + log(total[i])


@cache
def constants(head_dim: int, most_bytes: int) -> dict[str, int]:
    """Of the kernel, and of its launch, for a head_dim and so much shared memory of a block."""
    head = -(-head_dim // LINE) * LINE
    q_row, pieces = head + 4, head // LINE
    found = {"HEAD": head, "Q_ROW": q_row, "PIECES": pieces, "WIDE": 4 * pieces}
    for bm, bn in SIZES:
        k_byte = bm * q_row * 4
        v_byte = k_byte + bn * q_row * 4
        p_byte = v_byte + bn * head * 4
        shared_bytes = p_byte + bm * P_ROW * 4
        if shared_bytes <= most_bytes:
            break
    found |= {"BM": bm, "BN": bn, "ROWS": bm // 8, "COLS": bn // SIDE}
    return found | {"K_BYTE": k_byte, "V_BYTE": v_byte, "P_BYTE": p_byte, "SHARED_BYTES": shared_bytes}


def launches(Q, K, V, O, lse, problem):
    """O and log-sum-exp."""
    problem.check(Q, K, V, O, lse)
    (Q, K, V, O), apart = matrices(problem, Q, K, V, O)
    known = dict(constants(problem.head_dim, cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
    shared_bytes = known.pop("SHARED_BYTES")
    kernel = specialise_alignment(q_outer, in_pieces(Q, K, V, O), **known)
    scale = np.float32(problem.factor) * LOG2_E
    sizes = np.int32(problem.keys), np.int32(problem.group), tuple(map(np.int32, problem.band)), scale
    grid = -(-problem.queries // known["BM"]), problem.heads, problem.batch
    return [Launch(*within_limits(kernel, grid), THREADS, (Q, K, V, O, lse, apart, *sizes), shared_bytes)]
