"""The block of a tile of keys multiplies dQ, too, and the copy engine adds its share to memory.

Scores and their gradients are computed once, for all three gradients: five products, not seven, and half of the
exponentials. dV and dK take P^T and dS^T from registers, as before. For dQ both warpgroups also put dS^T in shared
memory, meet at a barrier, and multiply a half of dQ^T = K^T dS each, over the keys of both, from tiles that lie
MN-major. A share of dQ goes through shared memory to float32 sums in device memory by `cp.reduce.async.bulk`, while
dS^T Q is under way. The kernel for delta clears these sums, and a last one scales and rounds them.

The order in which blocks add to a number is not fixed, so that dQ may differ in its last bits from one run to the next.
(Dao, FlashAttention-2, 2023, section 3.2, for atomic additions to dQ; Shah and others, FlashAttention-3, 2024, for a
copy engine that works beside the products; PTX ISA, "cp.reduce.async.bulk".)

Costs, of a head of 128 numbers whose queries and keys are multiples of 128, all of them seen:

    D / 64 * (2 + 2 * queries / BN) + queries / BN          copies per tile of keys
    WARPGROUPS * queries / BN * (2 * (D + BN) + BM) / 16    `wgmma` per tile of keys
    queries * D                                             numbers added to memory per tile of keys
    2 * BM * D * 2 + STAGES * (2 * BN * D * 2 + 1024) + 2 * DS_BYTES + BN * D * 4    bytes of shared memory per block

Limited by shared memory, by its bytes: for a tile of queries 368 KB move there, in 2944 clocks of 128 bytes, beside
2560 clocks of products.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshaped
from labkit.attention.blocks import place_of_block, within_limits
from labkit.attention.forward.boxes import EXAMPLES as EXAMPLES
from labkit.attention.forward.boxes import place
from labkit.attention.forward.scores import NONE, hide, pack, put, seen
from labkit.attention.operands import LOG2_E as LOG2_OF_E
from labkit.attention.operands import matrices
from labkit.attention.words import in_format
from labkit.ladder import Launch, TooLarge
from labkit.parts.ring import acquire_stage, init_ring, next_stage

DETERMINISTIC = False  # blocks add to dQ in any order
FORMAT = ptx.BF16
TILES = {64: 96, 128: 64}  # queries of a tile that streams, by D: what registers hold
STAGES = 2  # of these
D = 128  # numbers of a row: head_dim, and zeros
BM = 128  # keys of a block
BN = TILES[D]
BOXES = D // 64  # of a row
BOX = 32  # words of a row of a box, 128 bytes
STEP = 8  # words of k that an instruction takes
WM = 64  # rows of a warpgroup
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
PARTS = WARPGROUPS // BOXES  # of the queries of a tile, in dQ: a warpgroup has a part, and 64 numbers of its rows
PART = BN // PARTS
SHARE = PART * 64  # numbers of dQ that a warpgroup has
SHARES = WARPGROUPS * SHARE
SCORES, SUMS, SLOPES = WM * BN // 128, WM * D // 128, SHARE // 128  # of a thread
PAIRS = SCORES // 2  # of weights, in a register each
TILE_BYTES, STAGE_BYTES, DS_BYTES = BM * D * 2, BN * D * 2, PARTS * BM * 128
Q_BYTE = 2 * TILE_BYTES  # where the ring of Q begins
DO_BYTE = Q_BYTE + STAGES * STAGE_BYTES
STATS_BYTE = DO_BYTE + STAGES * STAGE_BYTES  # and log-sum-exp and delta
DS_BYTE = STATS_BYTE + STAGES * 1024
SHARES_BYTE = DS_BYTE + 2 * DS_BYTES
STATS_ROWS = BN // 16  # of 32 numbers, of a tile of queries
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LANES, ROWS = 8, 16  # of a row of O, and rows of a block, for delta
LOG2_E = np.float32(LOG2_OF_E)


@cuda.jit(launch_bounds=LANES * ROWS)
def deltas(O, dO, lse, stats, sums, apart):
    """Log-sum-exp as an exponent of 2, and the sum of O * dO, of each query: by tiles, as `wgmma` takes them.

    It also clears the sums of dQ.
    """
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
    if row < stats.shape[1] * width:
        numbers, zero = np.int32(sums.shape[2] // width), np.float32(0)  # of a row
        for n in range(4 * lane, numbers, 4 * LANES):
            ptx.store4(sums, (plane, row // width, row % width * numbers + n), zero, zero, zero, zero)


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


@cuda.jit(device=True)
def hide_rows(S, top, lane, warp, keys):
    """Takes away the scores of rows behind the last key, which would be endless where log-sum-exp is far below 0."""
    if top + WM > keys:
        for r in range(2):
            if np.int32(top + warp % 4 * 16 + lane // 4 + 8 * r) >= keys:
                for n in range(2 * r, SCORES, 4):
                    S[n] = S[n + 1] = NONE


@cuda.jit(device=True)
def put_slopes(dS, tiles, turn, y, lane, warp):
    """Stores a warpgroup's rows of dS^T, already packed, from row y on."""
    row, half = y + warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
    for piece in range(0, BN // 8, 2):
        part, column = piece // (PART // 8), piece % (PART // 8)
        place = turn, part, row, (column + half ^ row % 8) * 4
        n = 2 * piece
        ptx.stmatrix4(tiles, place, dS[n], dS[n + 1], dS[n + 2], dS[n + 3])
    ptx.fence_async()


@cuda.jit(device=True)
def begin_share(dQ, K_tile, box, dS_tiles, turn, part):
    """Begins dQ^T = K^T dS for 64 numbers of a row, and a part of the queries of a tile."""
    ptx.wgmma_fence()
    for key in range(0, BM, 16):
        a, b = (0, box, key, 0), (turn, part, key, 0)
        if key == 0:  # whatever dQ holds
            ptx.wgmma_scaled(dQ, 0, PART, K_tile, a, MN_MAJOR, dS_tiles, b, MN_MAJOR, FORMAT, False, 1)
        else:
            ptx.wgmma_major(dQ, 0, PART, K_tile, a, MN_MAJOR, dS_tiles, b, MN_MAJOR, FORMAT)
    ptx.wgmma_commit()


@cuda.jit(device=True)
def add_share(dQ, shares, sums, plane, tile, side, lane, warp):
    """Begins to add a warpgroup's share of dQ to the sums, where they lie as its threads hold them."""
    begin, thread = np.uint32(side * SHARE), np.uint32(warp % 4 * 32 + lane)
    for n in range(0, SLOPES, 4):
        ptx.store4(shares, np.uint32(begin + n * 128 + thread * 4), dQ[n], dQ[n + 1], dQ[n + 2], dQ[n + 3])
    ptx.fence_async()
    ptx.barrier_sync(1 + side, 128)
    if thread == 0:
        ptx.tma_add(sums, (plane, tile, begin), shares, begin, SHARE)
        ptx.tma_store_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def bulk_reduction(
    Q_map, K_map, V_map, dO_map, stats_map, sums, dK_map, dV_map, heads, queries, keys, group, band, scale, factor
):
    """dK and dV, and shares of dQ: a block has a tile of keys."""
    K_tile = ptx.shared_array(0, (1, BOXES, BM, BOX), np.uint32)
    V_tile = ptx.shared_array(TILE_BYTES, (1, BOXES, BM, BOX), np.uint32)
    Q_tiles = ptx.shared_array(Q_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    dO_tiles = ptx.shared_array(DO_BYTE, (STAGES, BOXES, BN, BOX), np.uint32)
    stats = ptx.shared_array(STATS_BYTE, (STAGES, 8, 32), np.float32)
    dS_tiles = ptx.shared_array(DS_BYTE, (2, PARTS, BM, BOX), np.uint32)
    shares = ptx.shared_array(SHARES_BYTE, SHARES, np.float32)
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
        dQ = cuda.local.array(SLOPES, np.float32)  # turned: rows are numbers, columns queries
        side = np.uint32(warp // 4 - 1)
        y = np.uint32(side * WM)
        leads = warp % 4 == 0 and lane == 0
        for n in range(SUMS):
            dK[n] = dV[n] = 0
        ptx.mbarrier_wait(full_k, 0, 0)
        stage = parity = turn = np.uint32(0)
        head, tile = np.int32(batch * heads + own * group), first
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
            hide_rows(S, top + y, lane, warp, keys)
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
            put_slopes(dS, dS_tiles, turn, y, lane, warp)
            if leads:
                ptx.tma_store_wait(0)  # the share before may be overwritten
            ptx.barrier_sync(3, 128 * WARPGROUPS)  # dS of both is there, and the tile of dS before is free
            begin_share(dQ, K_tile, side // PARTS, dS_tiles, turn, side % PARTS)
            begin_sums(dK, dS, Q_tiles, stage)
            ptx.wgmma_wait(1)
            add_share(dQ, shares, sums, head, tile, side, lane, warp)
            ptx.wgmma_wait(0)
            if lane == 0:
                ptx.mbarrier_arrive(empty, stage)
            stage, parity = next_stage(stage, parity, STAGES)
            turn, tile = np.uint32(1 - turn), np.int32(tile + 1)
            if tile == behind:
                head, tile = np.int32(head + 1), first

        for n in range(SUMS):
            dK[n] *= factor
        ptx.barrier_sync(3, 128 * WARPGROUPS)  # nobody reads K any more
        put(dK, K_tile, y, lane, warp)
        put(dV, V_tile, y, lane, warp)
        ptx.barrier_sync(1 + side, 128)
        if leads:
            for box in range(BOXES):
                ptx.tma_store(dK_map, place(batch, own, top + y, box * BOX), K_tile, (0, box, y, 0))
                ptx.tma_store(dV_map, place(batch, own, top + y, box * BOX), V_tile, (0, box, y, 0))
            ptx.tma_store_commit()
            ptx.tma_store_wait(0)


@cuda.jit(launch_bounds=256)
def rounded(sums, dQ, apart, heads, queries, factor):
    """dQ of its sums, which lie as threads held them: of 16 numbers of two queries a thread."""
    t, w = np.int32(cuda.threadIdx.x // 4), np.int32(cuda.threadIdx.x % 4)
    eight, side = np.int32(cuda.threadIdx.y), np.int32(cuda.threadIdx.z)
    tile, head, batch = place_of_block(sums.shape[1], heads)
    plane = np.int32(batch * heads + head)
    query, word = np.int32(tile * BN + side % PARTS * PART + eight * 8 + t * 2), np.int32(side // PARTS * BOX + w * 8)
    held = cuda.local.array((4, 8), np.float32)
    for g in range(8):
        at = np.int32(side * SHARE + eight * 512 + w * 128 + g * 16 + t * 4)
        held[0, g], held[1, g], held[2, g], held[3, g] = ptx.load4(sums, (plane, tile, at))
    for n in range(4):
        own, first = np.int32(query + n % 2), np.int32(word + n // 2 * 4)
        if own < queries and first < dQ.shape[1]:
            row = np.int32(batch * apart[5][0] + head * apart[5][1] + own * apart[5][2])
            ptx.store4(
                dQ,
                (row, first),
                ptx.pack2(held[n, 0] * factor, held[n, 1] * factor, FORMAT),
                ptx.pack2(held[n, 2] * factor, held[n, 3] * factor, FORMAT),
                ptx.pack2(held[n, 4] * factor, held[n, 5] * factor, FORMAT),
                ptx.pack2(held[n, 6] * factor, held[n, 7] * factor, FORMAT),
            )


def launches(Q, K, V, O, lse, dO, dQ, dK, dV, problem, format, workspace):
    """dQ, dK and dV; log-sum-exp, delta and sums of dQ, by tiles of queries, are in the workspace."""
    problem.check(Q, K, V, O, lse, dO, dQ, dK, dV, dtype=format.dtype)
    if problem.head_dim > max(TILES):
        raise TooLarge(f"head_dim is {problem.head_dim}, and this step takes up to {max(TILES)}")
    width = -(-problem.head_dim // 64) * 64
    bn = TILES[width]
    heads, queries, planes = problem.heads, problem.queries, problem.batch * problem.heads
    tiles, of_heads = -(-queries // bn), problem.layout == "BHSD"
    stats = workspace.array("stats", (planes, tiles, 2, bn), np.float32)
    sums = workspace.array("sums of dQ", (planes, tiles, bn * width), np.float32)
    (*_, O, rows_of_dO, rows_of_dQ, _, _), apart = matrices(problem, Q, K, V, O, dO, dQ, dK, dV, words=True)

    def boxes(X, rows):
        return ptx.TensorMap(as_words(X), (1, 1, rows, BOX) if of_heads else (1, rows, 1, BOX))

    sizes = {"FORMAT": format.number, "D": width, "BN": bn}
    of_keys = _specialised(bulk_reduction, HEADS_FIRST=of_heads, **sizes)
    numbers = *map(np.int32, (heads, queries, problem.keys, problem.group)), tuple(map(np.int32, problem.band))
    factors = np.float32(problem.factor * LOG2_OF_E), np.float32(problem.factor)
    of_tiles = ptx.TensorMap(reshaped(stats, planes * tiles * bn // 16, 32), (bn // 16, 32))
    maps = boxes(Q, bn), boxes(K, BM), boxes(V, BM), boxes(dO, bn), of_tiles, sums, boxes(dK, WM), boxes(dV, WM)
    blocks = -(-problem.keys // BM) * problem.batch * problem.kv_heads
    parts = WARPGROUPS * 64 // width
    rings = STAGES * (2 * bn * width * 2 + 1024)
    shared_bytes = 2 * BM * width * 2 + rings + 2 * parts * BM * 128 + bn * width * 4
    by_rows, by_tiles = ((count, heads, problem.batch) for count in (-(-tiles * bn // ROWS), tiles))
    threads = 16, bn // parts // 8, WARPGROUPS
    whole, to_round = (O, rows_of_dO, lse, stats, sums, apart), (sums, rows_of_dQ, apart, *numbers[:2], factors[1])
    return [
        Launch(*within_limits(in_format(deltas, format), by_rows), LANES * ROWS, whole),
        Launch(of_keys, blocks, (32, WARPS), (*maps, *numbers, *factors), shared_bytes),
        Launch(*within_limits(_specialised(rounded, **sizes), by_tiles), threads, to_round),
    ]


_specialised = cache(specialise)
