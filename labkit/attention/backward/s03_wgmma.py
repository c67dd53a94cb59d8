"""Two warpgroups multiply by `wgmma`, and a third fetches what streams by the copy engine.

Both kernels keep a tile for each warpgroup in shared memory and gradients in registers, and let tiles of the other side
stream through a ring of stages: queries and dO past keys and values, for dK and dV, and the reverse for dQ. Scores of
keys by queries, S^T = K Q^T, and dP^T = V dO^T lie in registers as the tensor cores take the left operand of
dV += P^T dO and dK += dS^T Q. Their right operands, rows along the sum, lie MN-major, so that each tile is read both
ways as it came. Log-sum-exp and delta, which differ by column there, come with the tile of queries to which they
belong.

Products are asked for before their results are needed: the exponentials fall under dO V^T, and the slopes of dK under
P^T dO. While a warpgroup waits the other one multiplies. (Shah and others, FlashAttention-3, 2024, section 3; Dao,
FlashAttention-2, 2023, section 3.2, for blocks of keys.)

Costs, of a head of 128 numbers whose queries and keys are multiples of 128, all of them seen:

    D / 64 * (2 + 2 * queries / BQ) + queries / BQ          copies per tile of keys
    D / 64 * (2 + 2 * keys / BK)                            copies per tile of queries
    WARPGROUPS * queries / BQ * 2 * (D + BQ) / 16           `wgmma` per tile of keys
    WARPGROUPS * keys / BK * (2 * D + BK) / 16              `wgmma` per tile of queries
    (2 * BM + 2 * STAGES_K * BK) * D * 2                    bytes of shared memory per block

Limited by the tensor cores, which make seven products in place of the five that it takes.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshaped
from labkit.attention.blocks import place_of_block, within_limits
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES
from labkit.attention.forward.boxes import place
from labkit.attention.forward.scores import hide, pack, put, seen
from labkit.attention.operands import LOG2_E as LOG2_OF_E
from labkit.attention.operands import matrices
from labkit.attention.words import in_format
from labkit.ladder import Launch, TooLarge
from labkit.parts.ring import acquire_stage, init_ring, next_stage, ring_state

FORMAT = ptx.BF16
TILES = {64: (96, 128), 128: (64, 128)}  # queries and keys of a tile that streams, by D: what registers hold
STAGES_Q, STAGES_K = 3, 2  # of these
D = 128  # numbers of a row: head_dim, and zeros
BM = 128  # rows of a block: keys for dK and dV, queries for dQ
BQ, BK = TILES[D]
BN, STAGES = BQ, STAGES_Q  # of the tiles that stream past a block, for dK and dV
BOXES = D // 64  # of a row
BOX = 32  # words of a row of a box, 128 bytes
STEP = 8  # words of k that an instruction takes
WM = 64  # rows of a warpgroup
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
SCORES, SUMS = WM * BN // 128, WM * D // 128  # of a thread
PAIRS = SCORES // 2  # of weights, in a register each
TILE_BYTES, STAGE_BYTES = BM * D * 2, BN * D * 2
RING_BYTE = 2 * TILE_BYTES  # where the first ring of stages begins, of Q or K
SECOND_BYTE = RING_BYTE + STAGES * STAGE_BYTES  # and the second one, of dO or V
STATS_BYTE = SECOND_BYTE + STAGES * STAGE_BYTES  # and log-sum-exp and delta
STATS_ROWS = BN // 16  # of 32 numbers, of a tile of queries
SHARED_BYTES = STATS_BYTE + STAGES * 1024
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LANES, ROWS = 8, 16  # of a row of O, and rows of a block, for delta
LOG2_E = np.float32(LOG2_OF_E)


@cuda.jit(launch_bounds=LANES * ROWS)
def deltas(O, dO, lse, stats, apart):
    """Log-sum-exp as an exponent of 2, and the sum of O * dO, of each query: by tiles, as `wgmma` takes them."""
    queries, width, thread = np.int32(lse.shape[2]), np.int32(stats.shape[3]), np.int32(cuda.threadIdx.x)
    tile, head, batch = place_of_block(-(-stats.shape[1] * width // ROWS), lse.shape[1])
    row, lane = np.int32(tile * ROWS + thread // LANES), np.int32(thread % LANES)
    plane = np.int32(batch * lse.shape[1] + head)
    logarithm = total = np.float32(0)  # of rows that only fill a tile as well
    if row < queries:
        o_row = np.int32(batch * apart[3][0] + head * apart[3][1] + row * apart[3][2])
        do_row = np.int32(batch * apart[4][0] + head * apart[4][1] + row * apart[4][2])
        for word in range(4 * lane, O.shape[1], 4 * LANES):
            o, do = ptx.load4(O, (o_row, word)), ptx.load4(dO, (do_row, word))
            for n in range(4):
                (o_low, o_high), (do_low, do_high) = ptx.unpack2(o[n], FORMAT), ptx.unpack2(do[n], FORMAT)
                total += o_low * do_low + o_high * do_high
        logarithm = lse[batch, head, row] * LOG2_E
    for n in range(3):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1 << n)
    if lane == 0 and row < stats.shape[1] * width:
        stats[plane, row // width, 0, row % width] = logarithm
        stats[plane, row // width, 1, row % width] = total


@cuda.jit(device=True)
def bring(tiles, stage, tensor_map, batch, head, position, full, i):
    """Begins to fetch the boxes of some rows, from a position on, to a stage."""
    for box in range(BOXES):
        ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, place(batch, head, position, box * BOX), full, i)


@cuda.jit(device=True)
def begin_scores(S, A_tile, y, B_tiles, stage):
    """Begins S = A B^T for 64 rows of A, from row y on, and the rows of a tile."""
    ptx.wgmma_fence()
    for box in range(BOXES):
        for word in range(0, BOX, STEP):
            a, b = (0, box, y, word), (stage, box, 0, word)
            if box + word == 0:  # whatever S holds
                ptx.wgmma_scaled(S, 0, BN, A_tile, a, K_MAJOR, B_tiles, b, K_MAJOR, FORMAT, False, 1)
            else:
                ptx.wgmma_major(S, 0, BN, A_tile, a, K_MAJOR, B_tiles, b, K_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def begin_sums(sums, P, tiles, stage):
    """Begins sums += P B for a tile B, whose rows are as many as P has columns."""
    ptx.wgmma_fence()
    for n in range(0, P.shape[0], 4):
        b = stage, 0, 4 * n, 0
        ptx.wgmma_registers_major(sums, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), tiles, b, MN_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def pair(stats, stage, kind, n, lane):
    """What the columns of elements n and n + 1 of the scores have: of kind 0 log-sum-exp, of kind 1 delta."""
    row = kind * (BN // 32) + n // 16
    piece = np.uint32(n % 16 // 2 + lane % 4 // 2 ^ row % 8)
    return ptx.load2(stats, (stage, row, np.uint32(piece * 4 + lane % 2 * 2)))


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def wgmma(Q_map, K_map, V_map, dO_map, stats_map, dK_map, dV_map, heads, queries, keys, group, band, scale, factor):
    """dK and dV: a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (1, BOXES, BM, BOX), np.uint32)
    V_tile = ptx.shared_array(TILE_BYTES, (1, BOXES, BM, BOX), np.uint32)
    Q_tiles = ptx.shared_array(RING_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    dO_tiles = ptx.shared_array(SECOND_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    stats = ptx.shared_array(STATS_BYTE, (STAGES, 8, 32), np.float32)
    full_k = cuda.shared.array(1, np.uint64)
    full, empty = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full_k, 0, 1)
        init_ring(full, empty, STAGES, 4 * WARPGROUPS)
    cuda.syncthreads()
    rows, own_heads = np.int32(-(-keys // BM)), np.int32(heads // group)  # rows of tiles
    plane, top = np.int32(cuda.blockIdx.x // rows), np.int32(cuda.blockIdx.x % rows * BM)
    batch, own = np.int32(plane // own_heads), np.int32(plane % own_heads)
    seen_by = np.int32(-band[1]), np.int32(-band[0])  # key j is seen by queries j - highest to j - lowest
    first, behind = seen(top, BM, keys, queries, seen_by, BN)
    tiles = np.int32(max(0, behind - first))  # of queries, of a head

    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            ptx.mbarrier_expect(full_k, 0, 2 * TILE_BYTES)
            bring(K_tile, 0, K_map, batch, own, top, full_k, 0)
            bring(V_tile, 0, V_map, batch, own, top, full_k, 0)
            stage = parity = np.uint32(0)
            for head in range(own * group, own * group + group):
                for tile in range(first, behind):
                    acquire_stage(full, empty, stage, parity, 2 * STAGE_BYTES + BN * 8)
                    bring(Q_tiles, stage, Q_map, batch, head, tile * BN, full, stage)
                    of_tile = np.int32(((batch * heads + head) * (-(-queries // BN)) + tile) * STATS_ROWS)
                    ptx.tma_load(stats, (stage, 0, 0), stats_map, (of_tile, 0), full, stage)
                    bring(dO_tiles, stage, dO_map, batch, head, tile * BN, full, stage)
                    stage, parity = next_stage(stage, parity, STAGES)
    else:
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)  # scores, and weights
        T = cuda.local.array(SCORES, np.float32)  # dP, and dS
        P = cuda.local.array(PAIRS, np.uint32)
        dS = cuda.local.array(PAIRS, np.uint32)
        dK = cuda.local.array(SUMS, np.float32)
        dV = cuda.local.array(SUMS, np.float32)
        side = np.uint32(warp // 4 - 1)
        y = np.uint32(side * WM)
        leads = warp % 4 == 0 and lane == 0
        for n in range(SUMS):
            dK[n] = dV[n] = 0
        ptx.mbarrier_wait(full_k, 0, 0)
        stage = parity = np.uint32(0)
        tile = first
        for _ in range(np.int32(tiles * group)):  # those of all heads in one loop
            ptx.mbarrier_wait(full, stage, parity)
            begin_scores(S, K_tile, y, Q_tiles, stage)
            begin_scores(T, V_tile, y, dO_tiles, stage)
            ptx.wgmma_wait(1)
            for n in range(0, SCORES, 4):
                low, high = pair(stats, stage, 0, n, lane)
                for r in range(0, 4, 2):
                    S[n + r] = S[n + r] * scale - low
                    S[n + r + 1] = S[n + r + 1] * scale - high
            hide(S, top + y, np.int32(tile * BN), lane, warp, queries, seen_by)
            for n in range(SCORES):
                S[n] = ptx.exp2(S[n])
            pack(P, S)
            begin_sums(dV, P, dO_tiles, stage)
            ptx.wgmma_wait(1)
            for n in range(0, SCORES, 4):
                low, high = pair(stats, stage, 1, n, lane)
                for r in range(0, 4, 2):
                    T[n + r] = S[n + r] * (T[n + r] - low)
                    T[n + r + 1] = S[n + r + 1] * (T[n + r + 1] - high)
            pack(dS, T)
            begin_sums(dK, dS, Q_tiles, stage)
            ptx.wgmma_wait(0)
            if lane == 0:
                ptx.mbarrier_arrive(empty, stage)
            stage, parity = next_stage(stage, parity, STAGES)
            tile = np.int32(first if tile + 1 == behind else tile + 1)

        for n in range(SUMS):
            dK[n] *= factor
        put(dK, K_tile, y, lane, warp)
        put(dV, V_tile, y, lane, warp)
        ptx.barrier_sync(1 + side, 128)
        if leads:
            for box in range(BOXES):
                ptx.tma_store(dK_map, place(batch, own, top + y, box * BOX), K_tile, (0, box, y, 0))
                ptx.tma_store(dV_map, place(batch, own, top + y, box * BOX), V_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def of_queries(Q_map, K_map, V_map, dO_map, stats, dQ_map, heads, queries, keys, group, band, scale, factor):
    """dQ: a block has a tile of queries."""
    Q_tile = ptx.shared_array(0, (1, BOXES, BM, BOX), np.uint32)
    dO_tile = ptx.shared_array(TILE_BYTES, (1, BOXES, BM, BOX), np.uint32)
    K_tiles = ptx.shared_array(RING_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    V_tiles = ptx.shared_array(SECOND_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    full_q = cuda.shared.array(1, np.uint64)
    full_k, empty_k = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    full_v, empty_v = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full_q, 0, 1)
        init_ring(full_k, empty_k, STAGES, WARPGROUPS)
        init_ring(full_v, empty_v, STAGES, WARPGROUPS)
    cuda.syncthreads()
    rows = np.int32(-(-queries // BM))  # of tiles
    plane = np.int32(cuda.blockIdx.x // rows)
    top = np.int32((rows - 1 - cuda.blockIdx.x % rows) * BM)  # where it is causal the last ones take longest
    batch, head = np.int32(plane // heads), np.int32(plane % heads)
    first, behind = seen(top, BM, queries, keys, band, BN)

    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            own = np.int32(head // group)
            ptx.mbarrier_expect(full_q, 0, 2 * TILE_BYTES)
            bring(Q_tile, 0, Q_map, batch, head, top, full_q, 0)
            bring(dO_tile, 0, dO_map, batch, head, top, full_q, 0)
            for tile in range(first, behind):
                stage, parity = ring_state(tile - first, STAGES)
                acquire_stage(full_k, empty_k, stage, parity, STAGE_BYTES)
                bring(K_tiles, stage, K_map, batch, own, tile * BN, full_k, stage)
                acquire_stage(full_v, empty_v, stage, parity, STAGE_BYTES)
                bring(V_tiles, stage, V_map, batch, own, tile * BN, full_v, stage)
    else:
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)  # scores, and weights
        T = cuda.local.array(SCORES, np.float32)  # dP, and dS
        dS = cuda.local.array(PAIRS, np.uint32)
        dQ = cuda.local.array(SUMS, np.float32)
        of_row = cuda.local.array((2, 2), np.float32)  # log-sum-exp and delta of two rows
        width = np.int32(stats.shape[3])
        side = np.uint32(warp // 4 - 1)
        y = np.uint32(side * WM)
        leads = warp % 4 == 0 and lane == 0
        for r in range(2):
            query = np.int32(top + y + warp % 4 * 16 + lane // 4 + 8 * r)
            of_row[0, r] = of_row[1, r] = 0
            if query < queries:
                for kind in range(2):
                    of_row[kind, r] = stats[plane, query // width, kind, query % width]
        for n in range(SUMS):
            dQ[n] = 0
        ptx.mbarrier_wait(full_q, 0, 0)
        for tile in range(first, behind):
            stage, parity = ring_state(tile - first, STAGES)
            ptx.mbarrier_wait(full_k, stage, parity)
            begin_scores(S, Q_tile, y, K_tiles, stage)
            ptx.wgmma_wait(1)  # dQ of the tile before is done
            if leads and tile > first:
                before, _ = ring_state(tile - first - 1, STAGES)
                ptx.mbarrier_arrive(empty_k, before)
            ptx.mbarrier_wait(full_v, stage, parity)
            begin_scores(T, dO_tile, y, V_tiles, stage)
            ptx.wgmma_wait(1)
            for n in range(SCORES):
                S[n] = S[n] * scale - of_row[0, n % 4 // 2]
            hide(S, top + y, tile * BN, lane, warp, keys, band)
            for n in range(SCORES):
                S[n] = ptx.exp2(S[n])
            ptx.mbarrier_wait(full_v, stage, parity)  # passes at once; the compiler moves no wait before it
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty_v, stage)
            for n in range(SCORES):
                T[n] = S[n] * (T[n] - of_row[1, n % 4 // 2])
            pack(dS, T)
            begin_sums(dQ, dS, K_tiles, stage)
        ptx.wgmma_wait(0)

        for n in range(SUMS):
            dQ[n] *= factor
        put(dQ, Q_tile, y, lane, warp)
        ptx.barrier_sync(1 + side, 128)
        if leads:
            for box in range(BOXES):
                ptx.tma_store(dQ_map, place(batch, head, top + y, box * BOX), Q_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, format, workspace):
    """dQ, dK and dV; log-sum-exp and delta by tiles of queries are in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV, dtype=format.dtype)
    if problem.head_dim > max(TILES):
        raise TooLarge(f"head_dim is {problem.head_dim}, and this step takes up to {max(TILES)}")
    width = -(-problem.head_dim // 64) * 64
    bq, bk = TILES[width]
    heads, queries, planes = problem.heads, problem.queries, problem.batch * problem.heads
    tiles, of_heads = -(-queries // bq), problem.layout == "BHSD"
    stats = workspace.array("stats", (planes, tiles, 2, bq), np.float32)
    (*_, O, rows_of_dO, _, _, _), apart = matrices(problem, Q, K, V, O, dO, dQ, dK, dV, words=True)

    def boxes(X, rows):
        return ptx.TensorMap(as_words(X), (1, 1, rows, BOX) if of_heads else (1, rows, 1, BOX))

    specialised = {"FORMAT": format.number, "HEADS_FIRST": of_heads, "D": width}
    of_keys = _specialised(wgmma, BN=bq, STAGES=STAGES_Q, **specialised)
    of_rows = _specialised(of_queries, BN=bk, STAGES=STAGES_K, **specialised)
    numbers = heads, queries, problem.keys, problem.group
    sizes = *map(np.int32, numbers), tuple(map(np.int32, problem.band))
    factors = np.float32(problem.factor * LOG2_OF_E), np.float32(problem.factor)
    of_tiles = ptx.TensorMap(reshaped(stats, planes * tiles * bq // 16, 32), (bq // 16, 32))
    by_keys = boxes(Q, bq), boxes(K, BM), boxes(V, BM), boxes(dO, bq), of_tiles, boxes(dK, WM), boxes(dV, WM)
    by_queries = boxes(Q, BM), boxes(K, bk), boxes(V, bk), boxes(dO, BM), stats, boxes(dQ, WM)
    blocks_of_keys, blocks = -(-problem.keys // BM) * problem.batch * problem.kv_heads, -(-queries // BM) * planes
    resident = 2 * BM * width * 2
    shared_bytes = resident + STAGES_Q * (2 * bq * width * 2 + 1024), resident + STAGES_K * 2 * bk * width * 2
    threads = 32, WARPS
    whole, by_rows = (O, rows_of_dO, lse, stats, apart), (-(-tiles * bq // ROWS), heads, problem.batch)
    return [
        Launch(*within_limits(in_format(deltas, format), by_rows), LANES * ROWS, whole),
        Launch(of_keys, blocks_of_keys, threads, (*by_keys, *sizes, *factors), shared_bytes[0]),
        Launch(of_rows, blocks, threads, (*by_queries, *sizes, *factors), shared_bytes[1]),
    ]


_specialised = cache(specialise)
