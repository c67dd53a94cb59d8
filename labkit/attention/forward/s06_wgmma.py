"""Two warpgroups multiply by `wgmma`, and a third fetches the tiles of K and V by the copy engine.

The producer's one thread walks through the tiles that the block's queries see, and fills two rings of stages, one for
K and one for V; each consumer has 64 queries. `wgmma` reads Q and K in shared memory as they came, rows along k, and V
as well: to it a row of V is all that the product has for one k, so V lies MN-major. The scores of a thread are where
`wgmma` left them, in two rows, and the weights are where it takes them from: P goes from registers to the tensor cores,
rounded to the format, with no way through shared memory. Rows of O leave through the place that Q had.

Costs, of a head of width 128 whose queries and keys are multiples of the tile, all of them seen:

    keys / BN * 2 / BM              copies per query, of a whole tile
    keys / BN * (D + BN) / 16 / 64  `wgmma` of a warpgroup per query
    SHARED_BYTES                    bytes of shared memory per block

Limited by waiting: a warpgroup asks for scores, waits, makes weights of them, asks for O, waits. While it makes weights
the tensor cores have only what the other warpgroup asks for, and nobody sees to it that the two take turns.
"""

from math import log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES
from labkit.attention.forward.boxes import arguments, check, in_sizes, place
from labkit.ladder import Launch

FORMAT = ptx.BF16
SIGN = 1  # of the scale
D = 128  # numbers of a row, or 64
BM, BN = 128, 128  # queries of a block, and keys of a tile
STAGES = 2
BOX = 32  # words of a row of a box, 128 bytes
STEP = 8  # words of k that an instruction takes
BOXES = D // 64
WM = 64  # queries of a warpgroup
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
SCORES, SUMS = WM * BN // 128, WM * D // 128  # of a thread
PAIRS = SCORES // 2  # of weights, in a register each
TILE_BYTES = BN * D * 2
K_BYTE = BM * D * 2  # where the tiles of K begin
V_BYTE = K_BYTE + STAGES * TILE_BYTES
SHARED_BYTES = V_BYTE + STAGES * TILE_BYTES
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LN_2 = np.float32(log(2))
NONE = np.float32(-np.inf)  # the score of a key that is not seen


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def wgmma(Q_map, K_map, V_map, O_map, lse, keys, group, band, scale):
    Q_tile = ptx.shared_array(0, (BOXES, BM, BOX), np.uint32)
    K_tiles = ptx.shared_array(K_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    full_q = cuda.shared.array(1, np.uint64)
    full_k, empty_k = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    full_v, empty_v = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full_q, 0, 1)
        for stage in range(STAGES):
            ptx.mbarrier_init(full_k, stage, 1)
            ptx.mbarrier_init(full_v, stage, 1)
            ptx.mbarrier_init(empty_k, stage, WARPGROUPS)
            ptx.mbarrier_init(empty_v, stage, WARPGROUPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    heads, queries = np.int32(lse.shape[1]), np.int32(lse.shape[2])
    lowest, highest = band
    rows = -(-queries // BM)
    plane, top = cuda.blockIdx.x // rows, np.int32(cuda.blockIdx.x % rows * BM)
    batch, head = plane // heads, plane % heads
    kv_head = head // group
    last = min(keys, min(top + BM, queries) + highest) - 1
    first, behind = max(0, top + lowest) // BN, last // BN + 1  # tiles of keys that some query sees

    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            ptx.mbarrier_expect(full_q, 0, BM * D * 2)
            for box in range(BOXES):
                ptx.tma_load(Q_tile, (box, 0, 0), Q_map, place(batch, head, top, box * BOX), full_q, 0)
            for tile in range(first, behind):
                turn = tile - first
                stage, parity = turn % STAGES, turn // STAGES % 2
                ptx.mbarrier_wait(empty_k, stage, 1 - parity)
                ptx.mbarrier_expect(full_k, stage, TILE_BYTES)
                for box in range(BOXES):
                    at = place(batch, kv_head, tile * BN, box * BOX)
                    ptx.tma_load(K_tiles, (stage, box, 0, 0), K_map, at, full_k, stage)
                ptx.mbarrier_wait(empty_v, stage, 1 - parity)
                ptx.mbarrier_expect(full_v, stage, TILE_BYTES)
                for box in range(BOXES):
                    at = place(batch, kv_head, tile * BN, box * BOX)
                    ptx.tma_load(V_tiles, (stage, box, 0, 0), V_map, at, full_v, stage)
    else:
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)
        P = cuda.local.array(PAIRS, np.uint32)
        O = cuda.local.array(SUMS, np.float32)
        most = cuda.local.array(2, np.float32)  # of the scores of a row so far
        total = cuda.local.array(2, np.float32)  # of its weights, those that this thread has
        y = (warp // 4 - 1) * WM
        leads = warp % 4 == 0 and lane == 0
        row = np.int32(top + y + warp % 4 * 16 + lane // 4)  # and the one 8 below it
        column = np.int32(lane % 4 * 2)  # of a tile, and the next, and so on every 8
        for r in range(2):
            most[r], total[r] = NONE, 0
        for n in range(SUMS):
            O[n] = 0
        ptx.mbarrier_wait(full_q, 0, 0)
        for tile in range(first, behind):
            turn = tile - first
            stage, parity = turn % STAGES, turn // STAGES % 2
            ptx.mbarrier_wait(full_k, stage, parity)
            ptx.wgmma_fence()
            for box in range(BOXES):
                for word in range(0, BOX, STEP):
                    q, k = (box, y, word), (stage, box, 0, word)
                    keeps = box + word > 0
                    ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, keeps, SIGN)
            ptx.wgmma_commit()
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty_k, stage)

            left = np.int32(tile * BN)
            if left + BN > keys or left + BN - 1 > top + y + highest or left < top + y + WM - 1 + lowest:
                for r in range(2):
                    least = row + 8 * r + lowest - left - column
                    largest = min(keys - 1, row + 8 * r + highest) - left - column
                    for n in range(0, SCORES, 4):
                        for i in range(2):
                            if 2 * n + i < least or 2 * n + i > largest:
                                S[n + 2 * r + i] = NONE

            for r in range(2):
                high = most[r]
                for n in range(0, SCORES, 4):
                    high = cuda.libdevice.fmaxf(high, cuda.libdevice.fmaxf(S[n + 2 * r], S[n + 2 * r + 1]))
                high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(0xFFFFFFFF, high, 1))
                high = cuda.libdevice.fmaxf(high, cuda.shfl_xor_sync(0xFFFFFFFF, high, 2))
                origin = np.float32(0) if high == NONE else high * scale
                shrinks = ptx.exp2(most[r] * scale - origin)
                most[r] = high
                total[r] *= shrinks
                for n in range(0, SCORES, 4):
                    for i in range(2):
                        weight = ptx.exp2(S[n + 2 * r + i] * scale - origin)
                        S[n + 2 * r + i] = weight
                        total[r] += weight
                for n in range(0, SUMS, 4):
                    for i in range(2):
                        O[n + 2 * r + i] *= shrinks
            for n in range(0, SCORES, 2):
                P[n // 2] = ptx.pack2(S[n], S[n + 1], FORMAT)

            ptx.mbarrier_wait(full_v, stage, parity)
            ptx.wgmma_fence()
            for n in range(0, PAIRS, 4):
                v = stage, 0, 4 * n, 0
                ptx.wgmma_registers_major(O, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), V_tiles, v, MN_MAJOR, FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty_v, stage)

        for r in range(2):
            total[r] += cuda.shfl_xor_sync(0xFFFFFFFF, total[r], 1)
            total[r] += cuda.shfl_xor_sync(0xFFFFFFFF, total[r], 2)
            share, logarithm = np.float32(0), NONE
            if total[r] > 0:
                share, logarithm = np.float32(1) / total[r], most[r] * scale * LN_2 + log(total[r])
            if lane % 4 == 0 and row + 8 * r < queries:
                lse[batch, head, row + 8 * r] = logarithm
            for n in range(0, SUMS, 4):
                for i in range(2):
                    O[n + 2 * r + i] *= share
        box_row, box_piece = y + warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
        for piece in range(0, D // 8, 2):
            n = piece * 4
            ptx.stmatrix4(
                Q_tile,
                (piece // 8, box_row, (piece % 8 + box_piece ^ box_row % 8) * 4),
                ptx.pack2(O[n], O[n + 1], FORMAT),
                ptx.pack2(O[n + 2], O[n + 3], FORMAT),
                ptx.pack2(O[n + 4], O[n + 5], FORMAT),
                ptx.pack2(O[n + 6], O[n + 7], FORMAT),
            )
        ptx.fence_async()
        ptx.barrier_sync(warp // 4, 128)
        if leads:
            for box in range(BOXES):
                ptx.tma_store(O_map, place(batch, head, top + y, box * BOX), Q_tile, (box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


def launches(Q, K, V, O, lse, problem, format):
    """O and log-sum-exp."""
    check(problem, Q, K, V, O, lse, format)
    kernel = in_sizes(wgmma, problem, format)
    blocks = -(-problem.queries // BM) * problem.batch * problem.heads
    return [Launch(kernel, blocks, (32, WARPS), arguments(problem, Q, K, V, O, lse, BM, BN, WM), SHARED_BYTES)]
