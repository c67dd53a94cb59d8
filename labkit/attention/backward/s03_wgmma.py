"""Two consumer warpgroups multiply by `wgmma`, and a producer warpgroup loads streaming tiles by TMA.

In both kernels each warpgroup keeps its tile in shared memory and its gradients in registers, while tiles of the other
side stream through a ring of stages: Q and dO past K and V, for dK and dV, and the reverse for dQ. Scores of keys by
queries, S^T = K Q^T, and dP^T = V dO^T are in registers as the tensor cores need the left operands of dV += P^T dO and
dK += dS^T Q. Their right operands have rows along the sum and are MN-major: each tile is read both ways as it arrived.
Log-sum-exp and delta, which vary by column there, are loaded with their tile of queries.

GEMMs are issued before their results are needed: the exponentials overlap dO V^T, and dS for dK overlaps P^T dO.
While one warpgroup waits, the other multiplies. (Shah and others, FlashAttention-3, 2024, section 3; Dao,
FlashAttention-2, 2023, section 3.2, for blocks of keys.)

Costs per head of 128 elements, if queries and keys are multiples of 128 and none is masked:

    D / 64 * (2 + 2 * queries / BQ) + queries / BQ          copies per tile of keys
    D / 64 * (2 + 2 * keys / BK)                            copies per tile of queries
    WARPGROUPS * queries / BQ * 2 * (D + BQ) / 16           `wgmma` per tile of keys
    WARPGROUPS * keys / BK * (2 * D + BK) / 16              `wgmma` per tile of queries
    (2 * BM + 2 * STAGES_K * BK) * D * 2                    bytes of shared memory per block

Limited by the tensor cores, which compute seven GEMMs instead of five.
"""

from functools import cache, partial

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import reshape
from labkit.attention.blocks import block_index, kernel_and_grid
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES  # sizes that tests read here
from labkit.attention.forward.boxes import box_index, box_map
from labkit.attention.forward.scores import apply_mask, pack, store_rows, tile_range
from labkit.attention.operands import LOG2_E as LOG2_OF_E
from labkit.attention.operands import as_matrices, pad_head_dim, size_arguments
from labkit.attention.words import specialise_format
from labkit.ladder import Launch
from labkit.parts.ring import acquire_stage, init_ring, next_stage, ring_state

FORMAT = ptx.BF16
TILES = {64: (96, 128), 128: (64, 128)}  # queries and keys of a streaming tile, by D: limited by registers
STAGES_Q, STAGES_K = 3, 2  # of their rings
D = 128  # elements of a row: head_dim, padded with zeros
BM = 128  # rows of a block: keys for dK and dV, queries for dQ
BQ, BK = TILES[D]
BN, STAGES = BQ, STAGES_Q  # of the streaming tiles, for dK and dV
BOXES = D // 64  # of a row
BOX, STEP = 32, 8  # words: of a row of a box (128 bytes), of k per instruction
WM = 64  # rows of a warpgroup
WARPGROUPS = BM // WM  # consumers
WARPS = 4 * (1 + WARPGROUPS)
SCORES, ACCUMULATORS = WM * BN // 128, WM * D // 128  # of a thread
PAIRS = SCORES // 2  # of elements of P, in a register each
TILE_BYTES, STAGE_BYTES = BM * D * 2, BN * D * 2
RING_BYTE = 2 * TILE_BYTES  # offset of the first ring of stages, of Q or K
SECOND_BYTE = RING_BYTE + STAGES * STAGE_BYTES  # and the second one, of dO or V
STATS_BYTE = SECOND_BYTE + STAGES * STAGE_BYTES  # and log-sum-exp and delta
STATS_ROWS = BN // 16  # of 32 float32, of a tile of queries
SHARED_BYTES = STATS_BYTE + STAGES * 1024
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LANES, ROWS = 8, 16  # for delta: lanes per row, rows per block
LOG2_E = np.float32(LOG2_OF_E)


@cuda.jit(launch_bounds=LANES * ROWS)
def deltas(O, dO, lse, stats, strides):
    """Store log-sum-exp, as an exponent of 2, and delta, the sum of O * dO, in tiles of queries for `wgmma`."""
    num_queries, tile_rows, thread = np.int32(lse.shape[2]), np.int32(stats.shape[3]), np.int32(cuda.threadIdx.x)
    tile, head, batch = block_index(-(-stats.shape[1] * tile_rows // ROWS), lse.shape[1])
    row, lane = np.int32(tile * ROWS + thread // LANES), np.int32(thread % LANES)
    plane = np.int32(batch * lse.shape[1] + head)
    row_lse = row_delta = np.float32(0)  # also of rows past the last one
    if row < num_queries:
        o_row = np.int32(batch * strides[3][0] + head * strides[3][1] + row * strides[3][2])
        do_row = np.int32(batch * strides[4][0] + head * strides[4][1] + row * strides[4][2])
        for word in range(4 * lane, O.shape[1], 4 * LANES):
            o, do = ptx.load4(O, (o_row, word)), ptx.load4(dO, (do_row, word))
            for n in range(4):
                (o_low, o_high), (do_low, do_high) = ptx.unpack2(o[n], FORMAT), ptx.unpack2(do[n], FORMAT)
                row_delta += o_low * do_low + o_high * do_high
        row_lse = lse[batch, head, row] * LOG2_E
    for n in range(3):
        row_delta += cuda.shfl_xor_sync(0xFFFFFFFF, row_delta, 1 << n)
    if lane == 0 and row < stats.shape[1] * tile_rows:
        stats[plane, row // tile_rows, 0, row % tile_rows] = row_lse
        stats[plane, row // tile_rows, 1, row % tile_rows] = row_delta


@cuda.jit(device=True)
def issue_loads(tiles, stage, tensor_map, batch, head, position, full, i):
    """Issue TMA loads of some rows, from a position on, to a stage."""
    for box in range(BOXES):
        ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, box_index(batch, head, position, box * BOX), full, i)


@cuda.jit(device=True)
def begin_scores(S, A_tile, y, B_tiles, stage):
    """Begin S = A B^T for 64 rows of A, from row y on, and the rows of a tile B."""
    ptx.wgmma_fence()
    for box in range(BOXES):
        for word in range(0, BOX, STEP):
            a, b = (0, box, y, word), (stage, box, 0, word)
            if box + word == 0:  # S is not read
                ptx.wgmma_scaled(S, 0, BN, A_tile, a, K_MAJOR, B_tiles, b, K_MAJOR, FORMAT, False, 1)
            else:
                ptx.wgmma_major(S, 0, BN, A_tile, a, K_MAJOR, B_tiles, b, K_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def begin_accumulate(acc, P, tiles, stage):
    """Begin acc += P B for a tile B, whose rows are as many as P has columns."""
    ptx.wgmma_fence()
    for n in range(0, P.shape[0], 4):
        b = stage, 0, 4 * n, 0
        ptx.wgmma_registers_major(acc, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), tiles, b, MN_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def load_stats(stats, stage, kind, n, lane):
    """Load log-sum-exp (kind 0) or delta (kind 1) of the columns of elements n and n + 1 of a score tile."""
    row = kind * (BN // 32) + n // 16
    vector = np.uint32(n % 16 // 2 + lane % 4 // 2 ^ row % 8)
    return ptx.load2(stats, (stage, row, np.uint32(vector * 4 + lane % 2 * 2)))


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def wgmma(
    Q_map, K_map, V_map, dO_map, lse_map, dK_map, dV_map, H, num_queries, num_keys, heads_per_kv, window, scale, factor
):
    """Compute dK and dV; a block has a tile of keys."""
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
    # -- this block's keys, and the tiles of queries that see them --
    k_blocks, kv_heads = np.int32(-(-num_keys // BM)), np.int32(H // heads_per_kv)  # tiles of keys
    plane, k0 = np.int32(cuda.blockIdx.x // k_blocks), np.int32(cuda.blockIdx.x % k_blocks * BM)
    batch, kv_head = np.int32(plane // kv_heads), np.int32(plane % kv_heads)
    query_window = np.int32(-window[1]), np.int32(-window[0])  # key j is seen by queries j - highest to j - lowest
    first, end = tile_range(k0, BM, num_keys, num_queries, query_window, BN)
    tiles = np.int32(max(0, end - first))  # of queries, of a head
    # -- producer: load K and V, then Q and dO tiles --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            ptx.mbarrier_expect(full_k, 0, 2 * TILE_BYTES)
            issue_loads(K_tile, 0, K_map, batch, kv_head, k0, full_k, 0)
            issue_loads(V_tile, 0, V_map, batch, kv_head, k0, full_k, 0)
            stage = parity = np.uint32(0)
            for head in range(kv_head * heads_per_kv, kv_head * heads_per_kv + heads_per_kv):
                for tile in range(first, end):
                    acquire_stage(full, empty, stage, parity, 2 * STAGE_BYTES + BN * 8)
                    issue_loads(Q_tiles, stage, Q_map, batch, head, tile * BN, full, stage)
                    stats_row = np.int32(((batch * H + head) * (-(-num_queries // BN)) + tile) * STATS_ROWS)
                    ptx.tma_load(stats, (stage, 0, 0), lse_map, (stats_row, 0), full, stage)
                    issue_loads(dO_tiles, stage, dO_map, batch, head, tile * BN, full, stage)
                    stage, parity = next_stage(stage, parity, STAGES)
    else:
        # -- consumers --
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)  # scores, then P
        dP = cuda.local.array(SCORES, np.float32)  # dP, then dS
        P = cuda.local.array(PAIRS, np.uint32)
        dS = cuda.local.array(PAIRS, np.uint32)
        dK = cuda.local.array(ACCUMULATORS, np.float32)
        dV = cuda.local.array(ACCUMULATORS, np.float32)
        wg_idx = np.uint32(warp // 4 - 1)
        y = np.uint32(wg_idx * WM)
        is_leader = warp % 4 == 0 and lane == 0
        for n in range(ACCUMULATORS):
            dK[n] = dV[n] = 0
        ptx.mbarrier_wait(full_k, 0, 0)
        stage = parity = np.uint32(0)
        tile = first
        for _ in range(np.int32(tiles * heads_per_kv)):  # of all heads in one loop
            ptx.mbarrier_wait(full, stage, parity)
            # -- S^T = K Q^T and dP^T = V dO^T --
            begin_scores(S, K_tile, y, Q_tiles, stage)
            begin_scores(dP, V_tile, y, dO_tiles, stage)
            ptx.wgmma_wait(1)
            # -- P = exp2(S - lse), mask; dV += P^T dO --
            for n in range(0, SCORES, 4):
                low, high = load_stats(stats, stage, 0, n, lane)
                for r in range(0, 4, 2):
                    S[n + r] = S[n + r] * scale - low
                    S[n + r + 1] = S[n + r + 1] * scale - high
            apply_mask(S, k0 + y, np.int32(tile * BN), lane, warp, num_queries, query_window)
            for n in range(SCORES):
                S[n] = ptx.exp2(S[n])
            pack(P, S)
            begin_accumulate(dV, P, dO_tiles, stage)
            ptx.wgmma_wait(1)
            # -- dS = P * (dP - delta); dK += dS^T Q --
            for n in range(0, SCORES, 4):
                low, high = load_stats(stats, stage, 1, n, lane)
                for r in range(0, 4, 2):
                    dP[n + r] = S[n + r] * (dP[n + r] - low)
                    dP[n + r + 1] = S[n + r + 1] * (dP[n + r + 1] - high)
            pack(dS, dP)
            begin_accumulate(dK, dS, Q_tiles, stage)
            ptx.wgmma_wait(0)
            if lane == 0:
                ptx.mbarrier_arrive(empty, stage)
            stage, parity = next_stage(stage, parity, STAGES)
            tile = np.int32(first if tile + 1 == end else tile + 1)
        # -- store dK and dV --
        for n in range(ACCUMULATORS):
            dK[n] *= factor
        store_rows(dK, K_tile, y, lane, warp)
        store_rows(dV, V_tile, y, lane, warp)
        ptx.barrier_sync(1 + wg_idx, 128)
        if is_leader:
            for box in range(BOXES):
                ptx.tma_store(dK_map, box_index(batch, kv_head, k0 + y, box * BOX), K_tile, (0, box, y, 0))
                ptx.tma_store(dV_map, box_index(batch, kv_head, k0 + y, box * BOX), V_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def of_queries(
    Q_map, K_map, V_map, dO_map, stats, dQ_map, H, num_queries, num_keys, heads_per_kv, window, scale, factor
):
    """Compute dQ; a block has a tile of queries."""
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
    # -- this block's queries, and the key tiles that they see --
    m_blocks = np.int32(-(-num_queries // BM))  # tiles of queries
    plane = np.int32(cuda.blockIdx.x // m_blocks)
    q0 = np.int32((m_blocks - 1 - cuda.blockIdx.x % m_blocks) * BM)  # where it is causal the last ones take longest
    batch, head = np.int32(plane // H), np.int32(plane % H)
    first, end = tile_range(q0, BM, num_queries, num_keys, window, BN)
    # -- producer: load Q and dO, then K and V tiles --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            kv_head = np.int32(head // heads_per_kv)
            ptx.mbarrier_expect(full_q, 0, 2 * TILE_BYTES)
            issue_loads(Q_tile, 0, Q_map, batch, head, q0, full_q, 0)
            issue_loads(dO_tile, 0, dO_map, batch, head, q0, full_q, 0)
            for tile in range(first, end):
                stage, parity = ring_state(tile - first, STAGES)
                acquire_stage(full_k, empty_k, stage, parity, STAGE_BYTES)
                issue_loads(K_tiles, stage, K_map, batch, kv_head, tile * BN, full_k, stage)
                acquire_stage(full_v, empty_v, stage, parity, STAGE_BYTES)
                issue_loads(V_tiles, stage, V_map, batch, kv_head, tile * BN, full_v, stage)
    else:
        # -- consumers --
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)  # scores, then P
        dP = cuda.local.array(SCORES, np.float32)  # dP, then dS
        dS = cuda.local.array(PAIRS, np.uint32)
        dQ = cuda.local.array(ACCUMULATORS, np.float32)
        row_stats = cuda.local.array((2, 2), np.float32)  # log-sum-exp and delta of two rows
        tile_rows = np.int32(stats.shape[3])
        wg_idx = np.uint32(warp // 4 - 1)
        y = np.uint32(wg_idx * WM)
        is_leader = warp % 4 == 0 and lane == 0
        for r in range(2):
            query = np.int32(q0 + y + warp % 4 * 16 + lane // 4 + 8 * r)
            row_stats[0, r] = row_stats[1, r] = 0
            if query < num_queries:
                for kind in range(2):
                    row_stats[kind, r] = stats[plane, query // tile_rows, kind, query % tile_rows]
        for n in range(ACCUMULATORS):
            dQ[n] = 0
        ptx.mbarrier_wait(full_q, 0, 0)
        for tile in range(first, end):
            stage, parity = ring_state(tile - first, STAGES)
            ptx.mbarrier_wait(full_k, stage, parity)
            # -- S = Q K^T and dP = dO V^T --
            begin_scores(S, Q_tile, y, K_tiles, stage)
            ptx.wgmma_wait(1)  # dQ of the tile before is done
            if is_leader and tile > first:
                prev_stage, _ = ring_state(tile - first - 1, STAGES)
                ptx.mbarrier_arrive(empty_k, prev_stage)
            ptx.mbarrier_wait(full_v, stage, parity)
            begin_scores(dP, dO_tile, y, V_tiles, stage)
            ptx.wgmma_wait(1)
            # -- P = exp2(S - lse), mask --
            for n in range(SCORES):
                S[n] = S[n] * scale - row_stats[0, n % 4 // 2]
            apply_mask(S, q0 + y, tile * BN, lane, warp, num_keys, window)
            for n in range(SCORES):
                S[n] = ptx.exp2(S[n])
            ptx.mbarrier_wait(full_v, stage, parity)  # passes at once; the compiler hoists no wait past it
            ptx.wgmma_wait(0)
            if is_leader:
                ptx.mbarrier_arrive(empty_v, stage)
            # -- dS = P * (dP - delta); dQ += dS K --
            for n in range(SCORES):
                dP[n] = S[n] * (dP[n] - row_stats[1, n % 4 // 2])
            pack(dS, dP)
            begin_accumulate(dQ, dS, K_tiles, stage)
        ptx.wgmma_wait(0)
        # -- store dQ --
        for n in range(ACCUMULATORS):
            dQ[n] *= factor
        store_rows(dQ, Q_tile, y, lane, warp)
        ptx.barrier_sync(1 + wg_idx, 128)
        if is_leader:
            for box in range(BOXES):
                ptx.tma_store(dQ_map, box_index(batch, head, q0 + y, box * BOX), Q_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, format, workspace):
    """dQ, dK and dV; log-sum-exp and delta by tiles of queries are in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV, dtype=format.dtype)
    width = pad_head_dim(problem, max(TILES))
    bq, bk = TILES[width]
    heads, queries, planes = problem.heads, problem.queries, problem.batch * problem.heads
    tiles = -(-queries // bq)
    stats = workspace.array("stats", (planes, tiles, 2, bq), np.float32)
    (*_, O_rows, dO_rows, _, _, _), strides = as_matrices(problem, Q, K, V, O, dO, dQ, dK, dV, words=True)
    stats_grid = -(-tiles * bq // ROWS), heads, problem.batch
    to_stats = O_rows, dO_rows, lse, stats, strides
    constants = {"FORMAT": format.number, "HEADS_FIRST": problem.layout == "BHSD", "D": width}
    dkv_kernel = _specialised(wgmma, BN=bq, STAGES=STAGES_Q, **constants)
    dq_kernel = _specialised(of_queries, BN=bk, STAGES=STAGES_K, **constants)
    sizes = np.int32(heads), np.int32(queries), *size_arguments(problem)
    scales = np.float32(problem.factor * LOG2_OF_E), np.float32(problem.factor)
    boxes = partial(box_map, layout=problem.layout)
    lse_map = ptx.TensorMap(reshape(stats, planes * tiles * bq // 16, 32), (bq // 16, 32))
    dkv = boxes(Q, bq), boxes(K, BM), boxes(V, BM), boxes(dO, bq), lse_map, boxes(dK, WM), boxes(dV, WM)
    dq = boxes(Q, BM), boxes(K, bk), boxes(V, bk), boxes(dO, BM), stats, boxes(dQ, WM)
    dkv_blocks, dq_blocks = -(-problem.keys // BM) * problem.batch * problem.kv_heads, -(-queries // BM) * planes
    resident = 2 * BM * width * 2
    dkv_bytes, dq_bytes = resident + STAGES_Q * (2 * bq * width * 2 + 1024), resident + STAGES_K * 2 * bk * width * 2
    return [
        Launch(*kernel_and_grid(specialise_format(deltas, format), stats_grid), LANES * ROWS, to_stats),
        Launch(dkv_kernel, dkv_blocks, (32, WARPS), (*dkv, *sizes, *scales), dkv_bytes),
        Launch(dq_kernel, dq_blocks, (32, WARPS), (*dq, *sizes, *scales), dq_bytes),
    ]


_specialised = cache(specialise)
