"""The softmax of a tile is computed under the products of the next scores and the last sums.

A warpgroup asks for the scores of a tile and, before it waits for them, for the sums of the tile before, whose weights
it has. While the tensor cores add these up it makes weights of the scores, and shrinks O only then. The weights stay in
float32 until those sums are done, since the registers of P are being read.

The compiler may move a wait for the tensor cores up, and it did, to before the first exponential: nothing depends on
it. It moves nothing across the end of a basic block, so the wait for the values of this tile, a loop, stands between
(a test looks at the machine code).

Costs, of a head of 128 numbers whose queries and keys are multiples of the tile, all of them seen:

    D / 64 * (1 + 2 * keys / BN)                copies per block, of boxes of rows
    WARPGROUPS * keys / BN * (D + BN) / 16      `wgmma` per block
    (BM + 2 * STAGES * BN) * D * 2              bytes of shared memory per block

Limited by chance: the two warpgroups may ask for products at the same time, and compute at the same time.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES
from labkit.attention.forward.boxes import arguments, check, fetch, in_sizes, place
from labkit.attention.forward.scores import NONE, finish, hide, pack, put, seen, shrink, weigh
from labkit.ladder import Launch
from labkit.parts.ring import init_ring, ring_state

FORMAT = ptx.BF16
SIGN = 1  # of the scale
D = 128  # numbers of a row: head_dim, and zeros
BM, BN = 128, 128  # queries of a block, and keys of a tile
STAGES = 2
BOXES = D // 64  # of a row
BOX = 32  # words of a row of a box, 128 bytes
STEP = 8  # words of k that an instruction takes
WM = 64  # queries of a warpgroup
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
SCORES, SUMS = WM * BN // 128, WM * D // 128  # of a thread
PAIRS = SCORES // 2  # of weights, in a register each
K_BYTE = BM * D * 2  # where the tiles of K begin
V_BYTE = K_BYTE + STAGES * BN * D * 2
SHARED_BYTES = V_BYTE + STAGES * BN * D * 2
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
TILES = {64: 128, 128: 128, 192: 112, 256: 80}  # BN by D: as many keys as shared memory and registers hold


@cuda.jit(device=True)
def begin_scores(S, Q_tile, y, K_tiles, stage):
    """Begins S = Q K^T for 64 queries, from row y on, and a tile of keys."""
    ptx.wgmma_fence()
    for box in range(BOXES):
        for word in range(0, BOX, STEP):
            q, k = (0, box, y, word), (stage, box, 0, word)
            ptx.wgmma_scaled(S, 0, BN, Q_tile, q, K_MAJOR, K_tiles, k, K_MAJOR, FORMAT, box + word > 0, SIGN)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def begin_sums(O, P, V_tiles, stage):
    """Begins O += P V for a tile of keys."""
    ptx.wgmma_fence()
    for n in range(0, PAIRS, 4):
        v = stage, 0, 4 * n, 0
        ptx.wgmma_registers_major(O, 0, D, (P[n], P[n + 1], P[n + 2], P[n + 3]), V_tiles, v, MN_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def overlap(Q_map, K_map, V_map, O_map, lse, keys, group, band, scale):
    Q_tile = ptx.shared_array(0, (1, BOXES, BM, BOX), np.uint32)
    K_tiles = ptx.shared_array(K_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    full_q = cuda.shared.array(1, np.uint64)
    full_k, empty_k = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    full_v, empty_v = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full_q, 0, 1)
        init_ring(full_k, empty_k, STAGES, WARPGROUPS)
        init_ring(full_v, empty_v, STAGES, WARPGROUPS)
    cuda.syncthreads()
    heads, queries = np.int32(lse.shape[1]), np.int32(lse.shape[2])
    rows = np.int32(-(-queries // BM))  # of tiles
    plane, top = np.int32(cuda.blockIdx.x // rows), np.int32(cuda.blockIdx.x % rows * BM)
    batch, head = np.int32(plane // heads), np.int32(plane % heads)
    first, behind = seen(top, BM, queries, keys, band, BN)

    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            fetch(Q_tile, 0, Q_map, batch, head, top, full_q)
            for tile in range(first, behind):
                stage, parity = ring_state(tile - first, STAGES)
                ptx.mbarrier_wait(empty_k, stage, 1 - parity)
                fetch(K_tiles, stage, K_map, batch, head // group, tile * BN, full_k)
                ptx.mbarrier_wait(empty_v, stage, 1 - parity)
                fetch(V_tiles, stage, V_map, batch, head // group, tile * BN, full_v)
    else:
        ptx.setmaxnreg_inc(232)
        S = cuda.local.array(SCORES, np.float32)
        P = cuda.local.array(PAIRS, np.uint32)
        O = cuda.local.array(SUMS, np.float32)
        most = cuda.local.array(2, np.float32)  # of the scores of a row so far
        total = cuda.local.array(2, np.float32)  # of its weights, those that this thread has
        shrinks = cuda.local.array(2, np.float32)
        side = np.uint32(warp // 4 - 1)
        y = np.uint32(side * WM)
        leads = warp % 4 == 0 and lane == 0
        for r in range(2):
            most[r], total[r] = NONE, 0
        for n in range(SUMS):
            O[n] = 0
        ptx.mbarrier_wait(full_q, 0, 0)
        if first < behind:
            ptx.mbarrier_wait(full_k, 0, 0)
            begin_scores(S, Q_tile, y, K_tiles, 0)
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty_k, 0)
            hide(S, top + y, first * BN, lane, warp, keys, band)
            for r in range(2):
                most[r], total[r], _ = weigh(S, r, most[r], total[r], scale)
            pack(P, S)
            ptx.mbarrier_wait(full_v, 0, 0)
        for tile in range(first + 1, behind):
            stage, parity = ring_state(tile - first, STAGES)
            before, _ = ring_state(tile - first - 1, STAGES)
            ptx.mbarrier_wait(full_k, stage, parity)
            begin_scores(S, Q_tile, y, K_tiles, stage)
            begin_sums(O, P, V_tiles, before)
            ptx.wgmma_wait(1)
            if leads:
                ptx.mbarrier_arrive(empty_k, stage)
            hide(S, top + y, tile * BN, lane, warp, keys, band)
            for r in range(2):
                most[r], total[r], shrinks[r] = weigh(S, r, most[r], total[r], scale)
            ptx.mbarrier_wait(full_v, stage, parity)  # of the next sums; the compiler moves no wait before it
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty_v, before)
            for r in range(2):
                shrink(O, r, shrinks[r])
            pack(P, S)
        if first < behind:
            begin_sums(O, P, V_tiles, np.uint32((behind - first - 1) % STAGES))
            ptx.wgmma_wait(0)

        for r in range(2):
            logarithm = finish(O, r, most[r], total[r], scale)
            query = np.int32(top + y + warp % 4 * 16 + lane // 4 + 8 * r)
            if lane % 4 == 0 and query < queries:
                lse[batch, head, query] = logarithm
        put(O, Q_tile, y, lane, warp)
        ptx.barrier_sync(1 + side, 128)
        if leads:
            for box in range(BOXES):
                ptx.tma_store(O_map, place(batch, head, top + y, box * BOX), Q_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


def launches(Q, K, V, O, lse, problem, format):
    """O and log-sum-exp."""
    width = check(problem, Q, K, V, O, lse, format, max(TILES))
    rows = TILES[width]
    kernel = in_sizes(overlap, problem, format, D=width, BN=rows)
    shared_bytes = (BM + 2 * STAGES * rows) * width * 2
    blocks = -(-problem.queries // BM) * problem.batch * problem.heads
    return [Launch(kernel, blocks, (32, WARPS), arguments(problem, Q, K, V, O, lse, BM, rows, WM), shared_bytes)]
