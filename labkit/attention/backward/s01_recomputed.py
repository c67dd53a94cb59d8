"""Scores are computed again, once for dQ with queries outside, and once more for dK and dV with keys outside.

A block has a tile of queries, and their dQ stays in its registers while all keys pass by that they see. Another kernel
has tiles of keys, and the gradients of these and of their values, while all queries pass by that see some of them, from
all heads that share the keys. So nobody adds to what another block writes, and no order is left to chance. (Dao,
FlashAttention-2, 2023, algorithm 2, which has one kernel and adds to dQ by atomics.)

A weight is exp(S - lse). But in float32 the last bit of a score of a million is 0.06, as is that of its log-sum-exp:
weights would be some percent off, and beyond all measure where scores are larger. So the first kernel finds the maximum
and the sum of each row again, as forward does, and the second one takes its weights from these: they add up to 1, since
both kernels add up a score in the same order. Delta, the sum of O * dO, is added up in the order of dO V^T: where a key
has all of the weight, dS = P * (dO V^T - delta) is 0, with no rounding left to be multiplied by a large key.

Costs, of a head whose queries and keys are multiples of the tile, all of them seen:

    queries * HEAD * (3 + 2 * keys / TILE)      numbers loaded for dQ
    2 * keys * HEAD * (1 + queries / TILE)      numbers loaded for dK and dV
    (4 * TILE * ROW + 2 * TILE * P_ROW) * 4     bytes of shared memory per block

Limited by the CUDA cores, and by shared memory, from which they take both factors of each product. Seven products are
made in place of the five that it takes, since two of them are needed twice.
"""

from functools import cache
from math import inf

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.attention.blocks import divided, place_from_the_end, place_of_block, within_limits
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
V_BYTE, Q_BYTE, DO_BYTE, DS_BYTE = (n * TILE * ROW * 4 for n in range(1, 5))  # where tiles begin
P_BYTE = DS_BYTE + TILE * P_ROW * 4
SHARED_BYTES = P_BYTE + TILE * P_ROW * 4
SIZES = 32, 16  # TILE: the first whose tiles the shared memory of a block holds
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit(device=True)
def load(tile, X, first, apart, position, length, factor, thread):
    """The block loads rows of X, times a factor, from a position of a head on; zeros behind its length and head_dim."""
    for n in range(thread, TILE * HEAD, THREADS):
        row, col = n // HEAD, n % HEAD
        inside = position + row < length and col < X.shape[1]
        tile[row, col] = X[first + (position + row) * apart, col] * factor if inside else np.float32(0)


@cuda.jit(device=True)
def multiply(scores, Q_tile, K_tile, V_tile, dO_tile, x, y):
    """Tiles of S = Q K^T, as exponents of 2, and of dP = dO V^T."""
    for i in range(ROWS):
        for j in range(COLS):
            scores[0, i, j] = scores[1, i, j] = 0
    for d in range(HEAD):
        for i in range(ROWS):
            for j in range(COLS):
                scores[0, i, j] += Q_tile[y + i * DOWN, d] * K_tile[x + j * SIDE, d]
                scores[1, i, j] += dO_tile[y + i * DOWN, d] * V_tile[x + j * SIDE, d]


@cuda.jit(device=True)
def is_seen(row, col, keys, band):
    """Whether a query sees a key."""
    return col < keys and row + band[0] <= col and col <= row + band[1]


@cuda.jit(launch_bounds=THREADS)
def of_queries(Q, K, V, O, dO, delta, maximum, share, dQ, apart, keys, group, band, scale, factor):
    """dQ, and of each row delta and what makes weights of its scores: a block has a tile of queries."""
    K_tile = ptx.shared_array(0, (TILE, ROW), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (TILE, ROW), np.float32)
    Q_tile = ptx.shared_array(Q_BYTE, (TILE, ROW), np.float32)
    dO_tile = ptx.shared_array(DO_BYTE, (TILE, ROW), np.float32)
    dS_tile = ptx.shared_array(DS_BYTE, (TILE, P_ROW), np.float32)
    scores = cuda.local.array((2, ROWS, COLS), np.float32)
    sums = cuda.local.array((ROWS, WIDE), np.float32)
    row_max = cuda.local.array(ROWS, np.float32)  # of the scores so far
    row_sum = cuda.local.array(ROWS, np.float32)  # of the weights that this thread has
    row_delta = cuda.local.array(ROWS, np.float32)
    queries, thread = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x)
    x, y = np.int32(thread % SIDE), np.int32(thread // SIDE)
    tile, head, batch = place_from_the_end(-(-queries // TILE), delta.shape[1])  # where it is causal these take longest
    top = np.int32(tile * TILE)
    k_row = batch * apart[1][0] + head // group * apart[1][1]
    v_row = batch * apart[2][0] + head // group * apart[2][1]
    lowest, highest = band
    one = np.float32(1)

    # -- load Q, dO and O tile; delta --
    load(Q_tile, Q, batch * apart[0][0] + head * apart[0][1], apart[0][2], top, queries, scale, thread)
    load(dO_tile, dO, batch * apart[4][0] + head * apart[4][1], apart[4][2], top, queries, one, thread)
    load(V_tile, O, batch * apart[3][0] + head * apart[3][1], apart[3][2], top, queries, one, thread)
    cuda.syncthreads()
    for i in range(ROWS):
        row_max[i], row_sum[i], row_delta[i] = -inf, 0, 0
        for d in range(HEAD):
            row_delta[i] += dO_tile[y + i * DOWN, d] * V_tile[y + i * DOWN, d]
        for j in range(WIDE):
            sums[i, j] = 0

    bottom = min(top + TILE, queries) - 1
    for left in range(max(0, (top + lowest) // TILE * TILE), min(keys, bottom + highest + 1), TILE):
        # -- load K and V tile; S = Q K^T and dP = dO V^T --
        cuda.syncthreads()  # all have done with the tiles before
        load(K_tile, K, k_row, apart[1][2], left, keys, one, thread)
        load(V_tile, V, v_row, apart[2][2], left, keys, one, thread)
        cuda.syncthreads()
        multiply(scores, Q_tile, K_tile, V_tile, dO_tile, x, y)
        # -- mask, update row_max and row_sum, dS = P * (dP - delta) --
        for i in range(ROWS):
            before = row_max[i]
            for j in range(COLS):
                if not is_seen(top + y + i * DOWN, left + x + j * SIDE, keys, band):
                    scores[0, i, j] = -inf
                row_max[i] = max(row_max[i], scores[0, i, j])
            for n in range(4):
                row_max[i] = max(row_max[i], cuda.shfl_xor_sync(0xFFFFFFFF, row_max[i], 1 << n))
            base = np.float32(0) if row_max[i] == np.float32(-inf) else row_max[i]
            alpha = ptx.exp2(before - base)
            row_sum[i] *= alpha
            for j in range(WIDE):
                sums[i, j] *= alpha
            for j in range(COLS):
                weight = ptx.exp2(scores[0, i, j] - base)
                row_sum[i] += weight
                dS_tile[y + i * DOWN, x + j * SIDE] = weight * (scores[1, i, j] - row_delta[i])
        # -- dQ += dS K --
        cuda.syncthreads()
        for col in range(TILE):
            for i in range(ROWS):
                slope = dS_tile[y + i * DOWN, col]
                for j in range(WIDE):
                    sums[i, j] += slope * K_tile[col, x + j * SIDE]

    # -- store dQ, and delta, maximum and share of each row --
    for i in range(ROWS):
        row = top + y + i * DOWN
        for n in range(4):
            row_sum[i] += cuda.shfl_xor_sync(0xFFFFFFFF, row_sum[i], 1 << n)
        row_share = np.float32(0) if row_sum[i] == np.float32(0) else np.float32(1) / row_sum[i]
        for j in range(WIDE):
            col = x + j * SIDE
            if row < queries and col < dQ.shape[1]:
                at = batch * apart[5][0] + head * apart[5][1] + row * apart[5][2]
                dQ[at, col] = sums[i, j] * row_share * factor
        if x == 0 and row < queries:
            delta[batch, head, row], share[batch, head, row] = row_delta[i], row_share
            maximum[batch, head, row] = row_max[i] if row_share > 0 else np.float32(0)


@cuda.jit(launch_bounds=THREADS)
def recomputed(Q, K, V, dO, delta, maximum, share, dK, dV, apart, keys, group, band, scale):
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
    queries, thread = np.int32(delta.shape[2]), np.int32(cuda.threadIdx.x)
    x, y = np.int32(thread % SIDE), np.int32(thread // SIDE)
    kv_heads, _ = divided(delta.shape[1], group)
    tile, own, batch = place_of_block(-(-keys // TILE), kv_heads)
    left, one = np.int32(tile * TILE), np.float32(1)
    lowest, highest = band
    load(K_tile, K, batch * apart[1][0] + own * apart[1][1], apart[1][2], left, keys, one, thread)
    load(V_tile, V, batch * apart[2][0] + own * apart[2][1], apart[2][2], left, keys, one, thread)
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
            load(Q_tile, Q, q_row, apart[0][2], top, queries, scale, thread)
            load(dO_tile, dO, do_row, apart[4][2], top, queries, one, thread)
            cuda.syncthreads()
            multiply(scores, Q_tile, K_tile, V_tile, dO_tile, x, y)
            for i in range(ROWS):
                row = np.int32(top + y + i * DOWN)
                row_max = row_share = row_delta = np.float32(0)
                if row < queries:
                    row_max, row_share = maximum[batch, head, row], share[batch, head, row]
                    row_delta = delta[batch, head, row]
                for j in range(COLS):
                    weight = np.float32(0)
                    if row < queries and is_seen(row, left + x + j * SIDE, keys, band):
                        weight = ptx.exp2(scores[0, i, j] - row_max) * row_share
                    P_tile[y + i * DOWN, x + j * SIDE] = weight
                    dS_tile[y + i * DOWN, x + j * SIDE] = weight * (scores[1, i, j] - row_delta)
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
                dK[batch * apart[6][0] + own * apart[6][1] + row * apart[6][2], col] = of_keys[i, j] * LN_2
                dV[batch * apart[7][0] + own * apart[7][1] + row * apart[7][2], col] = of_values[i, j]


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
        found |= {"V_BYTE": whole, "Q_BYTE": 2 * whole, "DO_BYTE": 3 * whole, "DS_BYTE": 4 * whole}
        found |= {"P_BYTE": 4 * whole + small, "SHARED_BYTES": 4 * whole + 2 * small}
        if found["SHARED_BYTES"] <= most_bytes:
            return found
    raise TooLarge(f"tiles of {head_dim} numbers take {found['SHARED_BYTES']} bytes, and a block has {most_bytes}")


_in_sizes = cache(specialise)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, workspace):
    """dQ, dK and dV; delta, and what makes weights of scores, are in the workspace. Log-sum-exp is not read."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV)
    (Q, K, V, O, dO, dQ, dK, dV), apart = matrices(problem, Q, K, V, O, dO, dQ, dK, dV)
    known = dict(constants(problem.head_dim, cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
    shared_bytes, p_byte = known.pop("SHARED_BYTES"), known.pop("P_BYTE")  # where P begins, which dQ does not need
    of_rows, of_keys = _in_sizes(of_queries, **known), _in_sizes(recomputed, P_BYTE=p_byte, **known)
    each = problem.batch, problem.heads, problem.queries
    stats = [workspace.array(role, each, np.float32) for role in ("delta", "maximum", "share")]
    sizes = np.int32(problem.keys), np.int32(problem.group), tuple(map(np.int32, problem.band))
    factor = np.float32(problem.factor)
    of_all = apart, *sizes, factor * LOG2_E
    tiles_of_keys, tiles_of_queries = (-(-length // known["TILE"]) for length in (problem.keys, problem.queries))
    by_queries = within_limits(of_rows, (tiles_of_queries, problem.heads, problem.batch))
    by_keys = within_limits(of_keys, (tiles_of_keys, problem.kv_heads, problem.batch))
    return [
        Launch(*by_queries, THREADS, (Q, K, V, O, dO, *stats, dQ, *of_all, factor), p_byte),
        Launch(*by_keys, THREADS, (Q, K, V, dO, *stats, dK, dV, *of_all), shared_bytes),
    ]
