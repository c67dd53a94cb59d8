"""The block of a tile of keys also computes its part of dQ, which TMA adds to memory.

S and dP are computed once for all three gradients: five GEMMs, not seven, and half of the exponentials. dV and dK
take P^T and dS^T from registers, as before. For dQ both warpgroups also store dS^T in shared memory, meet at a barrier,
and compute a half of dQ^T = K^T dS each, over the keys of both, from MN-major tiles. This part of dQ goes through
shared memory to float32 sums in device memory by `cp.reduce.async.bulk`, while dS^T Q is in flight. The kernel for
delta clears these sums, and a last one scales and rounds them.

Blocks add to a number in no fixed order, so dQ may differ in its last bits from run to run. (Dao, FlashAttention-2,
2023, section 3.2, for atomic additions to dQ; Shah and others, FlashAttention-3, 2024, for TMA that overlaps the
GEMMs; PTX ISA, "cp.reduce.async.bulk".)

Costs per head of 128 elements, if queries and keys are multiples of 128 and none is masked:

    D / 64 * (2 + 2 * queries / BN) + queries / BN          copies per tile of keys
    WARPGROUPS * queries / BN * (2 * (D + BN) + BM) / 16    `wgmma` per tile of keys
    queries * D                                             numbers added to memory per tile of keys
    2 * BM * D * 2 + STAGES * (2 * BN * D * 2 + 1024) + 2 * DS_BYTES + BN * D * 4    bytes of shared memory per block

Limited by the bytes of shared memory: per tile of queries 368 KB move there, in 2944 clocks of 128 bytes, against 2560
clocks of GEMMs.
"""

from functools import cache, partial

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import reshape
from labkit.attention.blocks import block_index, kernel_and_grid
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES  # sizes that tests read here
from labkit.attention.forward.boxes import box_index, box_map
from labkit.attention.forward.scores import MASKED, apply_mask, pack, store_rows, tile_range
from labkit.attention.operands import LOG2_E as LOG2_OF_E
from labkit.attention.operands import as_matrices, pad_head_dim, size_arguments
from labkit.attention.words import specialise_format
from labkit.ladder import Launch
from labkit.parts.ring import acquire_stage, init_ring, next_stage

DETERMINISTIC = False  # blocks add to dQ in any order; calls choose by it
# `specialise` replaces FORMAT, D and BN, and recomputes what follows from them, in called functions too.
FORMAT = ptx.BF16
TILES = {64: 96, 128: 64}  # queries of a streaming tile, by D: limited by registers
STAGES = 2  # of its ring
D = 128  # elements of a row: head_dim, padded with zeros
BM = 128  # keys of a block
BN = TILES[D]
BOXES = D // 64  # of a row
# Tiles have TMA's 128-byte swizzle: 16-byte vector v of row r is stored at vector v ^ r % 8.
BOX, STEP = 32, 8  # words: of a row of a box (128 bytes), of k per instruction
WM = 64  # rows of a warpgroup
WARPGROUPS = BM // WM  # consumers
WARPS = 4 * (1 + WARPGROUPS)
PARTS = WARPGROUPS // BOXES  # of the queries of a tile: dQ of a warpgroup has one part, and 64 elements of its rows
PART_Q = BN // PARTS
DQ_PART = PART_Q * 64  # elements of dQ per warpgroup
DQ_STAGED = WARPGROUPS * DQ_PART
SCORES, ACCUMULATORS, DQ_SIZE = WM * BN // 128, WM * D // 128, DQ_PART // 128  # of a thread
PAIRS = SCORES // 2  # of elements of P, in a register each
TILE_BYTES, STAGE_BYTES, DS_BYTES = BM * D * 2, BN * D * 2, PARTS * BM * 128
Q_BYTE = 2 * TILE_BYTES  # offset of the ring of Q
DO_BYTE = Q_BYTE + STAGES * STAGE_BYTES
STATS_BYTE = DO_BYTE + STAGES * STAGE_BYTES  # and log-sum-exp and delta
DS_BYTE = STATS_BYTE + STAGES * 1024
DQ_BYTE = DS_BYTE + 2 * DS_BYTES
STATS_ROWS = BN // 16  # of 32 float32, of a tile of queries
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LANES, ROWS = 8, 16  # for delta: lanes per row, rows per block
LOG2_E = np.float32(LOG2_OF_E)


@cuda.jit(launch_bounds=LANES * ROWS)
def deltas(O, dO, lse, stats, dQ_sums, strides):
    """Store log-sum-exp, as an exponent of 2, and delta, in tiles of queries for `wgmma`; clear the sums of dQ."""
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
    if row < stats.shape[1] * tile_rows:
        row_size, zero = np.int32(dQ_sums.shape[2] // tile_rows), np.float32(0)  # of a row
        for n in range(4 * lane, row_size, 4 * LANES):
            ptx.store4(dQ_sums, (plane, row // tile_rows, row % tile_rows * row_size + n), zero, zero, zero, zero)


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


@cuda.jit(device=True)
def mask_rows(S, k0, lane, warp, num_keys):
    """Mask rows past the last key, whose P would overflow where log-sum-exp is far below 0."""
    if k0 + WM > num_keys:
        for r in range(2):
            if np.int32(k0 + warp % 4 * 16 + lane // 4 + 8 * r) >= num_keys:
                for n in range(2 * r, SCORES, 4):
                    S[n] = S[n + 1] = MASKED


@cuda.jit(device=True)
def store_ds(dS, tiles, buffer, y, lane, warp):
    """Store a warpgroup's rows of dS^T, already packed, from row y on."""
    row, half = y + warp % 4 * 16 + lane % 16, lane // 16  # of the 16 bytes that this lane stores
    for vec in range(0, BN // 8, 2):
        part, column = vec // (PART_Q // 8), vec % (PART_Q // 8)
        index = buffer, part, row, (column + half ^ row % 8) * 4
        n = 2 * vec
        ptx.stmatrix4(tiles, index, dS[n], dS[n + 1], dS[n + 2], dS[n + 3])
    ptx.fence_async()


@cuda.jit(device=True)
def begin_dq(dQ, K_tile, box, dS_tiles, buffer, part):
    """Begin dQ^T = K^T dS for 64 elements of head_dim, and a part of the queries of a tile."""
    ptx.wgmma_fence()
    for key in range(0, BM, 16):
        a, b = (0, box, key, 0), (buffer, part, key, 0)
        if key == 0:  # dQ is not read
            ptx.wgmma_scaled(dQ, 0, PART_Q, K_tile, a, MN_MAJOR, dS_tiles, b, MN_MAJOR, FORMAT, False, 1)
        else:
            ptx.wgmma_major(dQ, 0, PART_Q, K_tile, a, MN_MAJOR, dS_tiles, b, MN_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def add_dq(dQ, staged, dQ_sums, plane, tile, wg_idx, lane, warp):
    """Begin to add a warpgroup's part of dQ to the sums, which have the order of its registers."""
    begin, thread = np.uint32(wg_idx * DQ_PART), np.uint32(warp % 4 * 32 + lane)
    for n in range(0, DQ_SIZE, 4):
        ptx.store4(staged, np.uint32(begin + n * 128 + thread * 4), dQ[n], dQ[n + 1], dQ[n + 2], dQ[n + 3])
    ptx.fence_async()
    ptx.barrier_sync(1 + wg_idx, 128)
    if thread == 0:
        ptx.tma_add(dQ_sums, (plane, tile, begin), staged, begin, DQ_PART)
        ptx.tma_store_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def bulk_reduction(
    Q_map,
    K_map,
    V_map,
    dO_map,
    lse_map,
    dQ_sums,
    dK_map,
    dV_map,
    H,
    num_queries,
    num_keys,
    heads_per_kv,
    window,
    scale,
    factor,
):
    """Compute dK and dV, and add to dQ; a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (1, BOXES, BM, BOX), np.uint32)
    V_tile = ptx.shared_array(TILE_BYTES, (1, BOXES, BM, BOX), np.uint32)
    Q_tiles = ptx.shared_array(Q_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    dO_tiles = ptx.shared_array(DO_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    stats = ptx.shared_array(STATS_BYTE, (STAGES, 8, 32), np.float32)
    dS_tiles = ptx.shared_array(DS_BYTE, (2, PARTS, BM, BOX), np.uint32)
    staged = ptx.shared_array(DQ_BYTE, DQ_STAGED, np.float32)
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
        dQ = cuda.local.array(DQ_SIZE, np.float32)  # transposed: columns are queries
        wg_idx = np.uint32(warp // 4 - 1)
        y = np.uint32(wg_idx * WM)
        is_leader = warp % 4 == 0 and lane == 0
        for n in range(ACCUMULATORS):
            dK[n] = dV[n] = 0
        ptx.mbarrier_wait(full_k, 0, 0)
        stage = parity = buffer = np.uint32(0)
        head, tile = np.int32(batch * H + kv_head * heads_per_kv), first
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
            mask_rows(S, k0 + y, lane, warp, num_keys)
            for n in range(SCORES):
                S[n] = ptx.exp2(S[n])
            pack(P, S)
            begin_accumulate(dV, P, dO_tiles, stage)
            ptx.wgmma_wait(1)
            # -- dS = P * (dP - delta); dQ^T = K^T dS, dK += dS^T Q --
            for n in range(0, SCORES, 4):
                low, high = load_stats(stats, stage, 1, n, lane)
                for r in range(0, 4, 2):
                    dP[n + r] = S[n + r] * (dP[n + r] - low)
                    dP[n + r + 1] = S[n + r + 1] * (dP[n + r + 1] - high)
            pack(dS, dP)
            store_ds(dS, dS_tiles, buffer, y, lane, warp)
            if is_leader:
                ptx.tma_store_wait(0)  # the previous part of dQ may be overwritten
            ptx.barrier_sync(3, 128 * WARPGROUPS)  # dS of both is stored, and the previous tile of dS is free
            begin_dq(dQ, K_tile, wg_idx // PARTS, dS_tiles, buffer, wg_idx % PARTS)
            begin_accumulate(dK, dS, Q_tiles, stage)
            ptx.wgmma_wait(1)
            add_dq(dQ, staged, dQ_sums, head, tile, wg_idx, lane, warp)
            ptx.wgmma_wait(0)
            if lane == 0:
                ptx.mbarrier_arrive(empty, stage)
            stage, parity = next_stage(stage, parity, STAGES)
            buffer, tile = np.uint32(1 - buffer), np.int32(tile + 1)
            if tile == end:
                head, tile = np.int32(head + 1), first
        # -- store dK and dV --
        for n in range(ACCUMULATORS):
            dK[n] *= factor
        ptx.barrier_sync(3, 128 * WARPGROUPS)  # no warp reads K any more
        store_rows(dK, K_tile, y, lane, warp)
        store_rows(dV, V_tile, y, lane, warp)
        ptx.barrier_sync(1 + wg_idx, 128)
        if is_leader:
            for box in range(BOXES):
                ptx.tma_store(dK_map, box_index(batch, kv_head, k0 + y, box * BOX), K_tile, (0, box, y, 0))
                ptx.tma_store(dV_map, box_index(batch, kv_head, k0 + y, box * BOX), V_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


@cuda.jit(launch_bounds=256)
def round_dq(dQ_sums, dQ, strides, heads, num_queries, factor):
    """Scale and round the sums of dQ, stored in the order of registers; a thread has 16 elements of two queries."""
    t, w = np.int32(cuda.threadIdx.x // 4), np.int32(cuda.threadIdx.x % 4)
    eight, wg_idx = np.int32(cuda.threadIdx.y), np.int32(cuda.threadIdx.z)
    tile, head, batch = block_index(dQ_sums.shape[1], heads)
    plane = np.int32(batch * heads + head)
    query, word = (
        np.int32(tile * BN + wg_idx % PARTS * PART_Q + eight * 8 + t * 2),
        np.int32(wg_idx // PARTS * BOX + w * 8),
    )
    values = cuda.local.array((4, 8), np.float32)
    for g in range(8):
        index = np.int32(wg_idx * DQ_PART + eight * 512 + w * 128 + g * 16 + t * 4)
        values[0, g], values[1, g], values[2, g], values[3, g] = ptx.load4(dQ_sums, (plane, tile, index))
    for n in range(4):
        position, first = np.int32(query + n % 2), np.int32(word + n // 2 * 4)
        if position < num_queries and first < dQ.shape[1]:
            row = np.int32(batch * strides[5][0] + head * strides[5][1] + position * strides[5][2])
            ptx.store4(
                dQ,
                (row, first),
                ptx.pack2(values[n, 0] * factor, values[n, 1] * factor, FORMAT),
                ptx.pack2(values[n, 2] * factor, values[n, 3] * factor, FORMAT),
                ptx.pack2(values[n, 4] * factor, values[n, 5] * factor, FORMAT),
                ptx.pack2(values[n, 6] * factor, values[n, 7] * factor, FORMAT),
            )


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, format, workspace):
    """dQ, dK and dV; log-sum-exp, delta and sums of dQ, by tiles of queries, are in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV, dtype=format.dtype)
    width = pad_head_dim(problem, max(TILES))
    bn = TILES[width]
    heads, planes, tiles = problem.heads, problem.batch * problem.heads, -(-problem.queries // bn)
    stats = workspace.array("stats", (planes, tiles, 2, bn), np.float32)
    dQ_sums = workspace.array("sums of dQ", (planes, tiles, bn * width), np.float32)
    (*_, O_rows, dO_rows, dQ_rows, _, _), strides = as_matrices(problem, Q, K, V, O, dO, dQ, dK, dV, words=True)
    constants = {"FORMAT": format.number, "D": width, "BN": bn}
    dkv_kernel = _specialised(bulk_reduction, HEADS_FIRST=problem.layout == "BHSD", **constants)
    sizes = np.int32(heads), np.int32(problem.queries), *size_arguments(problem)
    scales = np.float32(problem.factor * LOG2_OF_E), np.float32(problem.factor)
    boxes = partial(box_map, layout=problem.layout)
    lse_map = ptx.TensorMap(reshape(stats, planes * tiles * bn // 16, 32), (bn // 16, 32))
    maps = boxes(Q, bn), boxes(K, BM), boxes(V, BM), boxes(dO, bn), lse_map, dQ_sums, boxes(dK, WM), boxes(dV, WM)
    blocks, parts = -(-problem.keys // BM) * problem.batch * problem.kv_heads, WARPGROUPS * 64 // width
    rings = STAGES * (2 * bn * width * 2 + 1024)
    shared_bytes = 2 * BM * width * 2 + rings + 2 * parts * BM * 128 + bn * width * 4
    by_rows, by_tiles = ((count, heads, problem.batch) for count in (-(-tiles * bn // ROWS), tiles))
    clear = O_rows, dO_rows, lse, stats, dQ_sums, strides
    to_round = dQ_sums, dQ_rows, strides, *sizes[:2], scales[1]
    return [
        Launch(*kernel_and_grid(specialise_format(deltas, format), by_rows), LANES * ROWS, clear),
        Launch(dkv_kernel, blocks, (32, WARPS), (*maps, *sizes, *scales), shared_bytes),
        Launch(
            *kernel_and_grid(_specialised(round_dq, **constants), by_tiles),
            (16, bn // parts // 8, WARPGROUPS),
            to_round,
        ),
    ]


_specialised = cache(specialise)
