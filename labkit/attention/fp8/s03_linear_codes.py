"""The code of an element of P is a linear function of its score: no exponential, and no conversion.

The rest is that of step 2, `summed_weights`. P is exp2(scale * score - ref_max), and query i sees the keys from
i + window[0] to i + window[1]. An e4m3 code has its exponent above 3 bits of fraction. So 8 times an exponent of 2,
plus 56, is the code of the power if the exponent is whole, and interpolates linearly between two powers otherwise.
(Schraudolph, A Fast, Compact Approximation of the Exponential Function, 1999, for the upper half of a float64.) Rounded
to a whole code, P has a root-mean-square error of 3.1 %, compared with 2.6 % for the rounded exponential, and of
8 % at most.

The line is 4 % above the exponential on average. All elements of a row share that, so it cancels in O. To correct
log-sum-exp, all codes are 0.4566 lower, which is less than half a code: the greatest element does not change. The line
meets zero at 2**-7, so elements below 2**-15 times the greatest are 0. A NaN score gives P = 0.

Costs per head of 128 elements, if queries and keys are multiples of the tile and none is masked:

    1 + 2 * keys / BN                           copies per tile of queries, of boxes of 128 bytes per row
    WARPGROUPS * keys / BN * (D + 2 * BN) / 32  `wgmma` per tile of queries, a third of which have 8 columns
    BM * (BOX_BYTES + D * 2) + (STAGES * (BN + D) + ONES) * BOX_BYTES    bytes of shared memory per block

Limited by instruction issue: a score takes one instruction for the row's maximum, two multiply-adds, and three quarters
of one that moves bytes; each element of O takes a multiply-add per tile. With the overhead of a tile, two warps of a
scheduler issue as many instructions as the tensor cores take cycles for both GEMMs. On an H100 the GEMMs alone
run 1.55x faster than the whole kernel; without maxima it is 1.21x faster, without adding tiles to O 1.14x.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.scores import apply_mask, divide_by_sum, rescale, store_rows, tile_range
from labkit.attention.fp8.operands import check_operands, load_boxes, make_arguments, specialise_kernel
from labkit.attention.fp8.problem import LinearCodes
from labkit.attention.fp8.weights import MASKED, MIN_UNIT_RATIO, add_tile, pack_codes, scores_to_codes
from labkit.ladder import Launch
from labkit.parts.ring import init_ring, ring_state

LOOSER_PROBLEM = LinearCodes  # its error bounds allow for a P that is off by 8 %
FORMAT = ptx.E4M3
SIGN = 1  # of each `wgmma`: 1 adds its product, -1 would subtract it
D = 128  # elements of a row: head_dim, padded with zeros
BM, BN = 128, 128  # queries of a block, and keys of a tile; each has a scale
STAGES = 2
BOX, BOX_BYTES, STEP = 32, 128, 8  # words and bytes of a row of a box, words of k per instruction
WM = 64  # queries of a warpgroup
WARPGROUPS = BM // WM  # consumers
CONSUMERS, WARPS = 128 * WARPGROUPS, 4 * (1 + WARPGROUPS)  # threads of consumers, warps of a block
ONES, FOUR_ONES = 8, np.uint32(0x38383838)  # columns of the narrowest `wgmma`, and 1 in e4m3, four times
SCORES, ACCUMULATORS, TILE_SUMS = WM * BN // 128, WM * D // 128, WM * ONES // 128  # of a thread
WORDS = SCORES // 4  # of P, four elements in each
O_BOXES = D // 64  # of a row of bfloat16
K_BYTE = BM * BOX_BYTES  # offset of the tiles of K
V_BYTE = K_BYTE + STAGES * BN * BOX_BYTES
O_BYTE = V_BYTE + STAGES * D * BOX_BYTES
ONES_BYTE = O_BYTE + BM * D * 2
SHARED_BYTES = ONES_BYTE + ONES * BOX_BYTES
TINY = np.float32(1e-30)  # least factor of scores: a tile of zeros has scale 0, and 0 * -inf is NaN
K_MAJOR = ptx.K_MAJOR


@cuda.jit(device=True)
def begin_qk(S, Q_tile, y, K_tiles, stage):
    """Begin S = Q K^T for 64 queries, from row y on, and a tile of keys."""
    ptx.wgmma_fence()
    q, k = (0, y, 0), (stage, 0, 0)
    ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, False, SIGN)
    for word in range(STEP, D // 4, STEP):
        q, k = (0, y, word), (stage, 0, word)
        ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, True, SIGN)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def begin_pv(T, sums, P, V_tiles, ones, stage):
    """Begin T = P V and sums = P 1 for a tile of keys."""
    ptx.wgmma_fence()
    for n in range(0, WORDS, 4):
        v = stage, 0, n // 4 * STEP
        ptx.wgmma_registers_scaled(T, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), V_tiles, v, K_MAJOR, FORMAT, n > 0, 1)
        ptx.wgmma_registers_scaled(
            sums, 0, ONES, (P[n], P[n + 1], P[n + 2], P[n + 3]), ones, (0, 0), K_MAJOR, FORMAT, n > 0, 1
        )
    ptx.wgmma_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def linear_codes(Q_map, K_map, V_map, q_scale, k_scale, v_scale, O_map, lse, num_keys, heads_per_kv, window, scale):
    Q_tile = ptx.shared_array(0, (1, BM, BOX), np.uint32)
    K_tiles = ptx.shared_array(K_BYTE, (STAGES, BN, BOX), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (STAGES, D, BOX), np.uint32)
    O_tile = ptx.shared_array(O_BYTE, (1, O_BOXES, BM, BOX), np.uint32)
    ones = ptx.shared_array(ONES_BYTE, (ONES, BOX), np.uint32)
    full_q, empty_q = cuda.shared.array(1, np.uint64), cuda.shared.array(1, np.uint64)
    full_k, empty_k = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    full_v, empty_v = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full_q, 0, 1)
        ptx.mbarrier_init(empty_q, 0, WARPGROUPS)
        init_ring(full_k, empty_k, STAGES, WARPGROUPS)
        init_ring(full_v, empty_v, STAGES, WARPGROUPS)
    if warp < ONES:
        ones[warp, lane] = FOUR_ONES
        ptx.fence_async()
    cuda.syncthreads()
    # -- pairs of query tiles of all heads --
    num_queries = np.int32(lse.shape[1])
    m_blocks = np.int32((num_queries + BM - 1) // BM)  # tiles of queries
    pairs = np.int32((m_blocks + 1) // 2)
    items = np.int32(lse.shape[0] * pairs)
    # -- producer: load Q, then K and V tiles --
    if warp < 4:
        ptx.setmaxnreg_dec(24)
        if warp == 0 and lane == 0:
            kv_count = q_count = np.uint32(0)  # tiles of K and of Q so far
            for item in range(np.int32(cuda.blockIdx.x), items, np.int32(cuda.gridDim.x)):
                plane, pair = np.int32(item // pairs), np.int32(item % pairs)
                kv_plane = np.int32(plane // heads_per_kv)
                for m_block in range(pair, np.int32(m_blocks - pair), np.int32(max(1, m_blocks - 1 - 2 * pair))):
                    ptx.mbarrier_wait(empty_q, 0, (q_count + 1) % 2)
                    load_boxes(Q_tile, 0, Q_map, (plane, m_block * BM, 0), full_q)
                    q_count = np.uint32(q_count + 1)
                    first, end = tile_range(m_block * BM, BM, num_queries, num_keys, window, BN)
                    for tile in range(first, end):
                        stage, parity = ring_state(kv_count, STAGES)
                        ptx.mbarrier_wait(empty_k, stage, 1 - parity)
                        load_boxes(K_tiles, stage, K_map, (kv_plane, tile * BN, 0), full_k)
                        ptx.mbarrier_wait(empty_v, stage, 1 - parity)
                        load_boxes(V_tiles, stage, V_map, (kv_plane, 0, tile * BOX), full_v)
                        kv_count = np.uint32(kv_count + 1)
    else:
        # -- consumers --
        ptx.setmaxnreg_inc(240)
        S = cuda.local.array(SCORES, np.float32)
        P = cuda.local.array(WORDS, np.uint32)
        PV = cuda.local.array(ACCUMULATORS, np.float32)  # of a tile
        sums = cuda.local.array(TILE_SUMS, np.float32)  # row sums of its P, each of two rows twice
        O = cuda.local.array(ACCUMULATORS, np.float32)
        ref_max = cuda.local.array(2, np.float32)  # per row: P is exp2(score * factor - ref_max)
        row_sum = cuda.local.array(2, np.float32)  # of P
        alpha = cuda.local.array(2, np.float32)  # factor of O before the newest P V is added
        next_alpha = cuda.local.array(2, np.float32)
        wg_idx = np.uint32(warp // 4 - 1)
        y = np.uint32(wg_idx * WM)
        is_leader = warp % 4 == 0 and lane == 0
        kv_count = q_count = stage = parity = np.uint32(0)
        if wg_idx == 1:
            ptx.barrier_arrive(1, CONSUMERS)  # the first warpgroup begins
        for item in range(np.int32(cuda.blockIdx.x), items, np.int32(cuda.gridDim.x)):
            plane, pair = np.uint32(item // pairs), np.int32(item % pairs)
            kv_plane = np.uint32(plane // heads_per_kv)
            for m_block in range(pair, np.int32(m_blocks - pair), np.int32(max(1, m_blocks - 1 - 2 * pair))):
                # -- one query tile: which key tiles it sees --
                q0 = np.int32(m_block * BM)
                first, end = tile_range(q0, BM, num_queries, num_keys, window, BN)  # window: limits of key - query
                q_factor = scale * q_scale[plane, np.uint32(m_block)]  # makes exponents of 2 of scores
                unit = unit_ratio = min_unit = np.float32(1)  # O is in units of V's newest scale, floored at min_unit
                for r in range(2):
                    ref_max[r], row_sum[r] = MASKED, 0
                for n in range(ACCUMULATORS):
                    O[n] = 0
                ptx.mbarrier_wait(full_q, 0, q_count % 2)
                q_count = np.uint32(q_count + 1)
                # -- first tile: S = Q K^T, mask, update ref_max --
                if first < end:
                    stage, parity = ring_state(kv_count, STAGES)
                    kv_count = np.uint32(kv_count + 1)
                    factor = max(q_factor * k_scale[kv_plane, np.uint32(first)], TINY)
                    unit = v_scale[kv_plane, np.uint32(first)]
                    min_unit = unit * MIN_UNIT_RATIO
                    ptx.mbarrier_wait(full_k, stage, parity)
                    begin_qk(S, Q_tile, y, K_tiles, stage)
                    ptx.wgmma_wait(0)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_k, stage)
                    apply_mask(S, q0 + y, first * BN, lane, warp, num_keys, window)
                    for r in range(2):
                        ref_max[r], alpha[r] = scores_to_codes(S, r, ref_max[r], factor)  # of P
                    pack_codes(P, S)
                    ptx.mbarrier_wait(full_v, stage, parity)
                for tile in range(np.int32(first + 1), end):
                    prev_stage = stage
                    stage, parity = ring_state(kv_count, STAGES)
                    kv_count = np.uint32(kv_count + 1)
                    factor = max(q_factor * k_scale[kv_plane, np.uint32(tile)], TINY)
                    ptx.mbarrier_wait(full_k, stage, parity)
                    ptx.barrier_sync(1 + wg_idx, CONSUMERS)
                    # -- S = Q K^T, and P V of the tile before --
                    begin_qk(S, Q_tile, y, K_tiles, stage)
                    begin_pv(PV, sums, P, V_tiles, ones, prev_stage)
                    ptx.barrier_arrive(2 - wg_idx, CONSUMERS)
                    ptx.wgmma_wait(1)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_k, stage)
                    # -- mask, update ref_max --
                    apply_mask(S, q0 + y, tile * BN, lane, warp, num_keys, window)
                    for r in range(2):
                        ref_max[r], next_alpha[r] = scores_to_codes(S, r, ref_max[r], factor)  # of P
                    ptx.mbarrier_wait(full_v, stage, parity)  # for the next P V; the compiler hoists no wait past it
                    ptx.wgmma_wait(0)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_v, prev_stage)
                    # -- O += P V, in units of the newest scale of V --
                    for r in range(2):
                        add_tile(O, PV, r, alpha[r] * unit_ratio)
                        row_sum[r] = row_sum[r] * alpha[r] + sums[2 * r]
                        alpha[r] = next_alpha[r]
                    new_unit = cuda.libdevice.fmaxf(v_scale[kv_plane, np.uint32(tile)], min_unit)
                    min_unit = cuda.libdevice.fmaxf(min_unit, new_unit * MIN_UNIT_RATIO)
                    unit_ratio = cuda.libdevice.fast_fdividef(unit, new_unit)
                    unit = new_unit
                    pack_codes(P, S)
                if is_leader:
                    ptx.mbarrier_arrive(empty_q, 0)
                # -- O += P V of the last tile --
                if first < end:
                    begin_pv(PV, sums, P, V_tiles, ones, stage)
                    ptx.wgmma_wait(0)
                    if is_leader:
                        ptx.mbarrier_arrive(empty_v, stage)
                    for r in range(2):
                        add_tile(O, PV, r, alpha[r] * unit_ratio)
                        row_sum[r] = row_sum[r] * alpha[r] + sums[2 * r]
                # -- store O and log-sum-exp --
                for r in range(2):
                    row_lse = divide_by_sum(O, r, ref_max[r], row_sum[r])
                    rescale(O, r, unit)
                    query = np.int32(q0 + y + warp % 4 * 16 + lane // 4 + 8 * r)
                    if lane % 4 == 0 and query < num_queries:
                        lse[plane, query] = row_lse
                if is_leader:
                    ptx.tma_store_wait(0)  # the previous rows are stored
                ptx.barrier_sync(3 + wg_idx, 128)
                store_rows(O, O_tile, y, lane, warp)
                ptx.barrier_sync(3 + wg_idx, 128)
                if is_leader:
                    for box in range(O_BOXES):
                        ptx.tma_store(O_map, (plane, q0 + y, box * BOX), O_tile, (0, box, y, 0))
                    ptx.tma_store_commit()
        if is_leader:
            ptx.tma_store_wait(0)


def launches(Q, K, V, q_scale, k_scale, v_scale, O, lse, problem, format):
    """O and log-sum-exp."""
    width = check_operands(problem, Q, K, V, q_scale, k_scale, v_scale, O, lse, format)
    kernel = specialise_kernel(linear_codes, problem, D=width)  # and SIGN, by the sign of the scale
    shared_bytes = BM * (BOX_BYTES + width * 2) + (STAGES * (BN + width) + ONES) * BOX_BYTES
    items = -(-problem.queries // BM // 2) * problem.batch * problem.heads
    blocks = min(items, cuda.get_current_device().MULTIPROCESSOR_COUNT)
    kernel_arguments = make_arguments(problem, Q, K, V, q_scale, k_scale, v_scale, O, lse, width)
    return [Launch(kernel, blocks, (32, WARPS), kernel_arguments, shared_bytes)]
