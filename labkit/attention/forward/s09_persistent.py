"""Persistent blocks: each loops over tiles of queries, and copies for the next one run ahead.

The grid has one block per SM. Tiles of queries are scheduled in pairs: the first of a head with the last, the second
with the last but one. If causal, the long tile compensates for the short one, and every pair takes the same time.
Blocks with neighbouring pairs read the same K and V from the L2 cache. O has shared memory of its own, from which it is
stored while the next tile is computed.

Costs per head of 128 elements, if queries and keys are multiples of the tile and none is masked:

    D / 64 * (1 + 2 * keys / BN)                copies per tile of queries, of boxes of rows
    WARPGROUPS * keys / BN * (D + BN) / 16      `wgmma` per tile of queries
    (2 * BM + 2 * STAGES * BN) * D * 2          bytes of shared memory per block

Limited by the tensor cores, and by the special function unit (MUFU). For an exponential per score, that takes half as
long as the tensor cores take for both GEMMs of a head of 128, and equally long for a head of 64.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward import BENCHED
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES  # sizes that tests read here
from labkit.attention.forward.boxes import box_index, check_operands, load_boxes, make_arguments, specialise_kernel
from labkit.attention.forward.scores import MASKED, apply_mask, divide, exp_tile, pack, rescale, store_rows, tile_range
from labkit.ladder import Launch
from labkit.parts.ring import init_ring, ring_state

FORMAT = ptx.BF16
SIGN = 1  # of the scale
D = 128  # elements of a row: head_dim, padded with zeros
BM, BN = 128, 128  # queries of a block, and keys of a tile
STAGES = 2
BOXES = D // 64  # of a row
BOX, STEP = 32, 8  # words: of a row of a box (128 bytes), of k per instruction
WM = 64  # queries of a warpgroup
WARPGROUPS = BM // WM  # consumers
CONSUMERS, WARPS = 128 * WARPGROUPS, 4 * (1 + WARPGROUPS)  # threads of consumers, warps of a block
SCORES, ACCUMULATORS = WM * BN // 128, WM * D // 128  # of a thread
PAIRS = SCORES // 2  # of elements of P, in a register each
K_BYTE = BM * D * 2  # offset of the tiles of K
V_BYTE = K_BYTE + STAGES * BN * D * 2
O_BYTE = V_BYTE + STAGES * BN * D * 2
SHARED_BYTES = O_BYTE + BM * D * 2
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
TILES = {64: 192, 128: 128}  # BN by D: the most keys that shared memory and registers hold
BENCHED = tuple(sizes for sizes in BENCHED if sizes[3] <= max(TILES))  # by head_dim


@cuda.jit(device=True)
def begin_qk(S, Q_tile, y, K_tiles, stage):
    """Begin S = Q K^T for 64 queries, from row y on, and a tile of keys."""
    ptx.wgmma_fence()
    for box in range(BOXES):
        for word in range(0, BOX, STEP):
            q, k = (0, box, y, word), (stage, box, 0, word)
            ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, box + word > 0, SIGN)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def begin_pv(O, P, V_tiles, stage):
    """Begin O += P V for a tile of keys."""
    ptx.wgmma_fence()
    for n in range(0, PAIRS, 4):
        v = stage, 0, 4 * n, 0
        ptx.wgmma_registers_major(O, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), V_tiles, v, MN_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def persistent(Q_map, K_map, V_map, O_map, lse, num_keys, heads_per_kv, window, scale):
    Q_tile = ptx.shared_array(0, (1, BOXES, BM, BOX), np.uint32)
    K_tiles = ptx.shared_array(K_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    O_tile = ptx.shared_array(O_BYTE, (1, BOXES, BM, BOX), np.uint32)
    full_q, empty_q = cuda.shared.array(1, np.uint64), cuda.shared.array(1, np.uint64)
    full_k, empty_k = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    full_v, empty_v = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full_q, 0, 1)
        ptx.mbarrier_init(empty_q, 0, WARPGROUPS)
        init_ring(full_k, empty_k, STAGES, WARPGROUPS)
        init_ring(full_v, empty_v, STAGES, WARPGROUPS)
    cuda.syncthreads()
    # -- pairs of query tiles of all heads --
    heads, num_queries = np.int32(lse.shape[1]), np.int32(lse.shape[2])
    m_blocks = np.int32(-(-num_queries // BM))  # tiles of queries
    pairs = np.int32(-(-m_blocks // 2))
    items = np.int32(lse.shape[0] * heads * pairs)
    # -- producer: load Q, then K and V tiles --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            kv_count = q_count = np.uint32(0)  # tiles of K and of Q so far
            for item in range(np.int32(cuda.blockIdx.x), items, np.int32(cuda.gridDim.x)):
                plane, pair = np.int32(item // pairs), np.int32(item % pairs)
                batch, head = np.int32(plane // heads), np.int32(plane % heads)
                for m_block in range(pair, np.int32(m_blocks - pair), np.int32(max(1, m_blocks - 1 - 2 * pair))):
                    ptx.mbarrier_wait(empty_q, 0, (q_count + 1) % 2)
                    load_boxes(Q_tile, 0, Q_map, batch, head, m_block * BM, full_q)
                    q_count = np.uint32(q_count + 1)
                    first, end = tile_range(m_block * BM, BM, num_queries, num_keys, window, BN)
                    for tile in range(first, end):
                        stage, parity = ring_state(kv_count, STAGES)
                        ptx.mbarrier_wait(empty_k, stage, 1 - parity)
                        load_boxes(K_tiles, stage, K_map, batch, head // heads_per_kv, tile * BN, full_k)
                        ptx.mbarrier_wait(empty_v, stage, 1 - parity)
                        load_boxes(V_tiles, stage, V_map, batch, head // heads_per_kv, tile * BN, full_v)
                        kv_count = np.uint32(kv_count + 1)
    else:
        # -- consumers --
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)
        P = cuda.local.array(PAIRS, np.uint32)
        O = cuda.local.array(ACCUMULATORS, np.float32)
        row_max = cuda.local.array(2, np.float32)  # running maximum of the scores
        row_sum = cuda.local.array(2, np.float32)  # sum of this thread's elements of P
        alpha = cuda.local.array(2, np.float32)
        wg_idx = np.uint32(warp // 4 - 1)
        y = np.uint32(wg_idx * WM)
        is_leader = warp % 4 == 0 and lane == 0
        kv_count = q_count = stage = parity = np.uint32(0)
        if wg_idx == 1:
            ptx.barrier_arrive(1, CONSUMERS)  # the first warpgroup begins
        for item in range(np.int32(cuda.blockIdx.x), items, np.int32(cuda.gridDim.x)):
            plane, pair = np.int32(item // pairs), np.int32(item % pairs)
            batch, head = np.int32(plane // heads), np.int32(plane % heads)
            for m_block in range(pair, np.int32(m_blocks - pair), np.int32(max(1, m_blocks - 1 - 2 * pair))):
                # -- one query tile: which key tiles it sees --
                q0 = np.int32(m_block * BM)
                first, end = tile_range(q0, BM, num_queries, num_keys, window, BN)  # window: limits of key - query
                for r in range(2):
                    row_max[r], row_sum[r] = MASKED, 0
                for n in range(ACCUMULATORS):
                    O[n] = 0
                ptx.mbarrier_wait(full_q, 0, q_count % 2)
                q_count = np.uint32(q_count + 1)
                # -- first tile: S = Q K^T, mask, update row_max, row_sum --
                if first < end:
                    stage, parity = ring_state(kv_count, STAGES)
                    kv_count = np.uint32(kv_count + 1)
                    ptx.mbarrier_wait(full_k, stage, parity)
                    begin_qk(S, Q_tile, y, K_tiles, stage)
                    ptx.wgmma_wait(0)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_k, stage)
                    apply_mask(S, q0 + y, first * BN, lane, warp, num_keys, window)
                    for r in range(2):
                        row_max[r], row_sum[r], _ = exp_tile(S, r, row_max[r], row_sum[r], scale)
                    pack(P, S)
                    ptx.mbarrier_wait(full_v, stage, parity)
                for tile in range(first + 1, end):
                    prev_stage = stage
                    stage, parity = ring_state(kv_count, STAGES)
                    kv_count = np.uint32(kv_count + 1)
                    ptx.mbarrier_wait(full_k, stage, parity)
                    ptx.barrier_sync(1 + wg_idx, CONSUMERS)
                    # -- S = Q K^T, and O += P V of the tile before --
                    begin_qk(S, Q_tile, y, K_tiles, stage)
                    begin_pv(O, P, V_tiles, prev_stage)
                    ptx.barrier_arrive(2 - wg_idx, CONSUMERS)
                    ptx.wgmma_wait(1)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_k, stage)
                    # -- mask, update row_max, row_sum --
                    apply_mask(S, q0 + y, tile * BN, lane, warp, num_keys, window)
                    for r in range(2):
                        row_max[r], row_sum[r], alpha[r] = exp_tile(S, r, row_max[r], row_sum[r], scale)
                    ptx.mbarrier_wait(full_v, stage, parity)  # for the next P V; the compiler hoists no wait past it
                    ptx.wgmma_wait(0)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_v, prev_stage)
                    for r in range(2):
                        rescale(O, r, alpha[r])
                    pack(P, S)
                if is_leader:
                    ptx.mbarrier_arrive(empty_q, 0)
                # -- O += P V of the last tile --
                if first < end:
                    begin_pv(O, P, V_tiles, stage)
                    ptx.wgmma_wait(0)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_v, stage)
                # -- store O and log-sum-exp --
                for r in range(2):
                    row_lse = divide(O, r, row_max[r], row_sum[r], scale)
                    query = np.int32(q0 + y + warp % 4 * 16 + lane // 4 + 8 * r)
                    if lane % 4 == 0 and query < num_queries:
                        lse[batch, head, query] = row_lse
                if is_leader:
                    ptx.tma_store_wait(0)  # the previous rows are stored
                ptx.barrier_sync(3 + wg_idx, 128)
                store_rows(O, O_tile, y, lane, warp)
                ptx.barrier_sync(3 + wg_idx, 128)
                if is_leader:
                    for box in range(BOXES):
                        ptx.tma_store(O_map, box_index(batch, head, q0 + y, box * BOX), O_tile, (0, box, y, 0))
                    ptx.tma_store_commit()
        if is_leader:
            ptx.tma_store_wait(0)


def launches(Q, K, V, O, lse, problem, format):
    """O and log-sum-exp."""
    width = check_operands(problem, Q, K, V, O, lse, format, max(TILES))
    bn = TILES[width]
    kernel = specialise_kernel(persistent, problem, format, D=width, BN=bn)
    shared_bytes = (2 * BM + 2 * STAGES * bn) * width * 2
    items = -(-problem.queries // BM // 2) * problem.batch * problem.heads
    blocks = min(items, cuda.get_current_device().MULTIPROCESSOR_COUNT)
    return [Launch(kernel, blocks, (32, WARPS), make_arguments(problem, Q, K, V, O, lse, BM, bn, WM), shared_bytes)]
