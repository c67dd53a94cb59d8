"""e4m3 operands, whose products the tensor cores make twice as fast; each block of them has a scale.

The kernel is `persistent` of the ladder "forward" but for four things. The scales of a block of queries and of one of
keys are part of the factor that makes exponents of scores. O is kept in units of the scale of the values that were
added last, so that it changes units where it shrinks anyway; no unit is less than the 2**64th part of an earlier one,
lest O overflows. Weights are e4m3 as well: the greatest of a row is 2**8, whose 2**-14th part still has all bits. A
thread has other columns of scores than an e4m3 fragment wants; it packs them as they are, because V holds its keys in
that order. (Shah and others, FlashAttention-3, 2024, section 3.3, which moves bytes between threads instead, and
transposes V in the kernel.)

And the tensor cores add up the values of a tile of keys alone. Sums of e4m3 products keep 13 bits behind the largest,
and lose the rest: in one accumulator the values of 4,096 keys that do not cancel come out 8 % too small. O takes the
sums of each tile in float32, by a multiply-add where a multiplication shrank it. That costs no instruction, but
registers for both. (DeepSeek-V3 Technical Report, 2024, section 3.3.2; Zhang and others, SageAttention2, 2024.)

Costs, of a head of 128 numbers whose queries and keys are multiples of the tile, all of them seen:

    1 + 2 * keys / BN                           copies per tile of queries, of boxes of 128 bytes a row
    WARPGROUPS * keys / BN * (D + BN) / 32      `wgmma` per tile of queries
    BM * (BOX_BYTES + D * 2) + STAGES * (BN + D) * BOX_BYTES    bytes of shared memory per block

Limited by the special function unit, which takes as long for an exponential of each score as the tensor cores do for
both products of a head of 128 numbers.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.scores import finish, hide, put, seen, shrink
from labkit.attention.fp8.operands import arguments, check, fetch, in_sizes
from labkit.attention.fp8.weights import NONE, SPAN, add, pack, weigh
from labkit.ladder import Launch
from labkit.parts.ring import init_ring, ring_state

FORMAT = ptx.E4M3
SIGN = 1  # of the scale
D = 128  # numbers of a row: head_dim, and zeros
BM, BN = 128, 128  # queries of a block, and keys of a tile; each has a scale
STAGES = 2
BOX, BOX_BYTES = 32, 128  # words and bytes of a row of a box
STEP = 8  # words of k that an instruction takes
WM = 64  # queries of a warpgroup
WARPGROUPS = BM // WM  # that multiply
MULTIPLYING = 128 * WARPGROUPS  # threads
WARPS = 4 * (1 + WARPGROUPS)
SCORES, SUMS = WM * BN // 128, WM * D // 128  # of a thread
WORDS = SCORES // 4  # of weights
O_BOXES = D // 64  # of a row of bfloat16
K_BYTE = BM * BOX_BYTES  # where the tiles of K begin
V_BYTE = K_BYTE + STAGES * BN * BOX_BYTES
O_BYTE = V_BYTE + STAGES * D * BOX_BYTES
SHARED_BYTES = O_BYTE + BM * D * 2
TINY = np.float32(1e-30)
K_MAJOR = ptx.K_MAJOR


@cuda.jit(device=True)
def begin_scores(S, Q_tile, y, K_tiles, stage):
    """Begins S = Q K^T for 64 queries, from row y on, and a tile of keys."""
    ptx.wgmma_fence()
    q, k = (0, y, 0), (stage, 0, 0)
    ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, False, SIGN)
    for word in range(STEP, D // 4, STEP):
        q, k = (0, y, word), (stage, 0, word)
        ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, True, SIGN)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def begin_sums(N, P, V_tiles, stage):
    """Begins N = P V for a tile of keys."""
    ptx.wgmma_fence()
    for n in range(0, WORDS, 4):
        v = stage, 0, n // 4 * STEP
        ptx.wgmma_registers_scaled(N, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), V_tiles, v, K_MAJOR, FORMAT, n > 0, 1)
    ptx.wgmma_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def block_scaled(Q_map, K_map, V_map, q_scale, k_scale, v_scale, O_map, lse, keys, group, band, scale):
    Q_tile = ptx.shared_array(0, (1, BM, BOX), np.uint32)
    K_tiles = ptx.shared_array(K_BYTE, (STAGES, BN, BOX), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (STAGES, D, BOX), np.uint32)
    O_tile = ptx.shared_array(O_BYTE, (1, O_BOXES, BM, BOX), np.uint32)
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
    queries = np.int32(lse.shape[1])
    rows = np.int32((queries + BM - 1) // BM)  # of tiles
    pairs = np.int32((rows + 1) // 2)
    items = np.int32(lse.shape[0] * pairs)

    if warp < 4:
        ptx.setmaxnreg_dec(24)
        if warp == 0 and lane == 0:
            used = turn = np.uint32(0)  # stages, and tiles of queries, so far
            for item in range(np.int32(cuda.blockIdx.x), items, np.int32(cuda.gridDim.x)):
                plane, pair = np.int32(item // pairs), np.int32(item % pairs)
                of_keys = np.int32(plane // group)
                for row in range(pair, np.int32(rows - pair), np.int32(max(1, rows - 1 - 2 * pair))):
                    ptx.mbarrier_wait(empty_q, 0, (turn + 1) % 2)
                    fetch(Q_tile, 0, Q_map, (plane, row * BM, 0), full_q)
                    turn = np.uint32(turn + 1)
                    first, behind = seen(row * BM, BM, queries, keys, band, BN)
                    for tile in range(first, behind):
                        stage, parity = ring_state(used, STAGES)
                        ptx.mbarrier_wait(empty_k, stage, 1 - parity)
                        fetch(K_tiles, stage, K_map, (of_keys, tile * BN, 0), full_k)
                        ptx.mbarrier_wait(empty_v, stage, 1 - parity)
                        fetch(V_tiles, stage, V_map, (of_keys, 0, tile * BOX), full_v)
                        used = np.uint32(used + 1)
    else:
        ptx.setmaxnreg_inc(240)
        S = cuda.local.array(SCORES, np.float32)
        P = cuda.local.array(WORDS, np.uint32)
        N = cuda.local.array(SUMS, np.float32)  # of a tile
        O = cuda.local.array(SUMS, np.float32)
        origin = cuda.local.array(2, np.float32)  # of a row: the exponent that stands for a weight of 1
        total = cuda.local.array(2, np.float32)  # of its weights, those that this thread has
        shrinks = cuda.local.array(2, np.float32)  # by what O shrinks before the newest tile's sums are added
        next_shrinks = cuda.local.array(2, np.float32)
        side = np.uint32(warp // 4 - 1)
        y = np.uint32(side * WM)
        leads = warp % 4 == 0 and lane == 0
        used = turn = stage = parity = np.uint32(0)
        if side == 1:
            ptx.barrier_arrive(1, MULTIPLYING)  # the first warpgroup begins
        for item in range(np.int32(cuda.blockIdx.x), items, np.int32(cuda.gridDim.x)):
            plane, pair = np.uint32(item // pairs), np.int32(item % pairs)
            of_keys = np.uint32(plane // group)
            for row in range(pair, np.int32(rows - pair), np.int32(max(1, rows - 1 - 2 * pair))):
                top = np.int32(row * BM)
                first, behind = seen(top, BM, queries, keys, band, BN)
                of_q = scale * q_scale[plane, np.uint32(row)]
                unit = into = least = np.float32(1)  # of the newest tile of values, the one before in it, and the least
                for r in range(2):
                    origin[r], total[r] = NONE, 0
                for n in range(SUMS):
                    O[n] = 0
                ptx.mbarrier_wait(full_q, 0, turn % 2)
                turn = np.uint32(turn + 1)
                if first < behind:
                    stage, parity = ring_state(used, STAGES)
                    used = np.uint32(used + 1)
                    factor = max(of_q * k_scale[of_keys, np.uint32(first)], TINY)
                    unit = v_scale[of_keys, np.uint32(first)]
                    least = unit * SPAN
                    ptx.mbarrier_wait(full_k, stage, parity)
                    begin_scores(S, Q_tile, y, K_tiles, stage)
                    ptx.wgmma_wait(0)
                    if leads:
                        ptx.mbarrier_arrive(empty_k, stage)
                    hide(S, top + y, first * BN, lane, warp, keys, band)
                    for r in range(2):
                        origin[r], total[r], shrinks[r] = weigh(S, r, origin[r], total[r], factor)
                    pack(P, S)
                    ptx.mbarrier_wait(full_v, stage, parity)
                for tile in range(np.int32(first + 1), behind):
                    before = stage
                    stage, parity = ring_state(used, STAGES)
                    used = np.uint32(used + 1)
                    factor = max(of_q * k_scale[of_keys, np.uint32(tile)], TINY)
                    ptx.mbarrier_wait(full_k, stage, parity)
                    ptx.barrier_sync(1 + side, MULTIPLYING)
                    begin_scores(S, Q_tile, y, K_tiles, stage)
                    begin_sums(N, P, V_tiles, before)
                    ptx.barrier_arrive(2 - side, MULTIPLYING)
                    ptx.wgmma_wait(1)
                    if leads:
                        ptx.mbarrier_arrive(empty_k, stage)
                    hide(S, top + y, tile * BN, lane, warp, keys, band)
                    for r in range(2):
                        origin[r], total[r], next_shrinks[r] = weigh(S, r, origin[r], total[r], factor)
                    ptx.mbarrier_wait(full_v, stage, parity)  # of the next sums; the compiler moves no wait before it
                    ptx.wgmma_wait(0)
                    if leads:
                        ptx.mbarrier_arrive(empty_v, before)
                    for r in range(2):
                        add(O, N, r, shrinks[r] * into)
                        shrinks[r] = next_shrinks[r]
                    new_unit = cuda.libdevice.fmaxf(v_scale[of_keys, np.uint32(tile)], least)
                    least = cuda.libdevice.fmaxf(least, new_unit * SPAN)
                    into = cuda.libdevice.fast_fdividef(unit, new_unit)
                    unit = new_unit
                    pack(P, S)
                if leads:
                    ptx.mbarrier_arrive(empty_q, 0)
                if first < behind:
                    begin_sums(N, P, V_tiles, stage)
                    ptx.wgmma_wait(0)
                    if leads:
                        ptx.mbarrier_arrive(empty_v, stage)
                    for r in range(2):
                        add(O, N, r, shrinks[r] * into)

                for r in range(2):
                    logarithm = finish(O, r, origin[r], total[r], np.float32(1))
                    shrink(O, r, unit)
                    query = np.int32(top + y + warp % 4 * 16 + lane // 4 + 8 * r)
                    if lane % 4 == 0 and query < queries:
                        lse[plane, query] = logarithm
                if leads:
                    ptx.tma_store_wait(0)  # the rows before have left
                ptx.barrier_sync(3 + side, 128)
                put(O, O_tile, y, lane, warp)
                ptx.barrier_sync(3 + side, 128)
                if leads:
                    for box in range(O_BOXES):
                        ptx.tma_store(O_map, (plane, top + y, box * BOX), O_tile, (0, box, y, 0))
                    ptx.tma_store_commit()
        if leads:
            ptx.tma_store_wait(0)


def launches(Q, K, V, q_scale, k_scale, v_scale, O, lse, problem, format):
    """O and log-sum-exp."""
    width = check(problem, Q, K, V, q_scale, k_scale, v_scale, O, lse, format)
    kernel = in_sizes(block_scaled, problem, D=width)
    shared_bytes = BM * (BOX_BYTES + width * 2) + STAGES * (BN + width) * BOX_BYTES
    items = -(-problem.queries // BM // 2) * problem.batch * problem.heads
    blocks = min(items, cuda.get_current_device().MULTIPROCESSOR_COUNT)
    given = arguments(problem, Q, K, V, q_scale, k_scale, v_scale, O, lse, width)
    return [Launch(kernel, blocks, (32, WARPS), given, shared_bytes)]
