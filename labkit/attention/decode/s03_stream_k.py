"""All tiles of all heads in one list, which is divided evenly among as many blocks as the GPU holds: Stream-K.

A block begins somewhere in a head and ends somewhere in another. Of a head that several blocks share, whoever is last
to come puts the partial results together, always in the order of the keys, so that the bits do not depend on who that
is. One launch does it all, also where sequences differ in length, and leaves the counters at 0 for the next.
(Osama, Merrill, Cecka, Garland and Owens, Stream-K, 2023; Sanovar and others, Lean Attention, 2024.)

Costs, of sequences whose keys are a multiple of the tile:

    2 * batch * keys * kv_heads * HEAD / 8          copies of K and V, of 16 bytes
    2 * SLOTS * BN * HEAD * 2                       bytes of shared memory per block
    min(132 * BLOCKS_OF_SM, batch * kv_heads * keys // (WARPS * BN))    blocks, on an H100
    0                                               bank conflicts per block

Limited by memory.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import divided
from labkit.attention.decode.tiles import (
    BLOCKS_OF_SM,
    BN,
    NONE,
    ROWS,
    THREADS,
    WARPS,
    arguments,
    attend,
    blocks_at_once,
    constants,
    copy,
    finish,
    in_sizes,
    keep,
    load_queries,
    planes_of,
    put,
)
from labkit.ladder import Launch

HEAD = 128  # columns of a tile: head_dim and zeros
WORDS = HEAD // 2
STEPS, NO = HEAD // 16, HEAD // 8  # of k in Q K^T, and fragments of 8 columns of O
ROW = HEAD + 8  # of a partial result: sums, origin, total, and no bank twice
STAGES = 3  # tiles of keys, and of values, that a warp has
PENDING = STAGES - 2  # copies that may be under way while a tile is multiplied
SLOTS = WARPS * STAGES
V_BYTE = SLOTS * BN * HEAD * 2
SHARED_BYTES = 2 * V_BYTE


@cuda.jit(device=True)
def tiles_of(lengths, batch):
    """Tiles of a head of a sequence: one at least, since O is to be written where there are no keys."""
    return max(1, np.int32((lengths[batch] + BN - 1) // BN))


@cuda.jit(device=True)
def begin_of(block, share, more):
    """Where a block's part of the list begins: the first `more` blocks have a tile more than the others."""
    return np.int32(block * share + min(block, more))


@cuda.jit(device=True)
def owner_of(tile, share, more):
    """The block whose part a tile of the list is in."""
    if tile < more * (share + 1):
        block, _ = divided(tile, share + 1)
    else:
        block, _ = divided(tile - more, share)
    return block


@cuda.jit(launch_bounds=(THREADS, BLOCKS_OF_SM))
def stream_k(Q, K, V, lengths, table, O, lse, apart, page, group, queries, causal, scale, planes, results, arrived):
    K_tiles = ptx.shared_array(0, (SLOTS, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (SLOTS, BN, WORDS), np.uint32)
    of_warps = ptx.shared_array(0, (WARPS, ROWS, ROW), np.float32)
    is_last = cuda.shared.array(1, np.uint32)
    q = cuda.local.array((STEPS, 4), np.uint32)
    sums = cuda.local.array((NO, 4), np.float32)
    origin = cuda.local.array(2, np.float32)
    total = cuda.local.array(2, np.float32)
    seen = cuda.local.array(2, np.int32)
    thread, block = np.int32(cuda.threadIdx.x), np.int32(cuda.blockIdx.x)
    lane, warp = np.int32(thread % 32), np.int32(thread // 32)
    members = np.int32(group * queries)  # that share a head of K
    of_head = np.int32((members + ROWS - 1) // ROWS)  # tiles of them

    whole = np.int32(0)
    for each in range(lengths.shape[0]):
        whole += tiles_of(lengths, each) * planes
    share, more = divided(whole, cuda.gridDim.x)
    at, behind = begin_of(block, share, more), begin_of(block + 1, share, more)
    if at == behind:
        return
    batch, begin, tiles = np.int32(0), np.int32(0), tiles_of(lengths, 0)
    while begin + tiles * planes <= at:
        begin += tiles * planes
        batch += 1
        tiles = tiles_of(lengths, batch)
    plane, _ = divided(at - begin, tiles)
    begin += plane * tiles

    while at < behind:
        end = np.int32(min(begin + tiles, behind))
        length, (head, own) = np.int32(lengths[batch]), divided(plane, of_head)
        top = np.int32(own * ROWS)
        q_row = np.int32(batch * apart[0][0] + head * group * apart[0][1])
        o_row = np.int32(batch * apart[3][0] + head * group * apart[3][1])
        first, last = np.int32(at - begin + warp), np.int32(min(end - begin, (length + BN - 1) // BN))

        for ahead in range(STAGES - 1):
            tile = np.int32(first + ahead * WARPS)
            if tile < last:
                slot = np.int32(warp * STAGES + ahead)
                copy(K_tiles, V_tiles, slot, K, V, table, apart, page, batch, head, tile * BN, length, lane)
            ptx.cp_async_commit()
        load_queries(q, Q, q_row, apart[0], top, members, queries, lane)
        for r in range(2):
            origin[r], total[r] = NONE, 0
            _, query = divided(top + lane // 4 + 8 * r, queries)
            seen[r] = length - (queries - 1 - query) * causal
        for j in range(NO):
            for n in range(4):
                sums[j, n] = 0
        stage = np.int32(0)
        for tile in range(first, last, WARPS):
            ptx.cp_async_wait(PENDING)
            cuda.syncwarp()  # this tile is there for all lanes, and all have done with the one before
            ahead = np.int32(tile + (STAGES - 1) * WARPS)
            if ahead < last:
                slot = np.int32(warp * STAGES + (stage + STAGES - 1) % STAGES)
                copy(K_tiles, V_tiles, slot, K, V, table, apart, page, batch, head, ahead * BN, length, lane)
            ptx.cp_async_commit()
            attend(sums, origin, total, q, K_tiles, V_tiles, warp * STAGES + stage, tile * BN, seen, scale, lane)
            stage = np.int32((stage + 1) % STAGES)

        cuda.syncthreads()  # all warps have done with their tiles
        put(of_warps, warp, sums, origin, total, lane)
        cuda.syncthreads()
        place = np.int32(batch * planes + plane)  # of all heads
        one, other = owner_of(begin, share, more), owner_of(begin + tiles - 1, share, more)
        rows = np.int32(min(members - top, ROWS))
        keep(results, place + block, of_warps, rows, thread)
        cuda.threadfence()  # what this thread wrote can be seen before the block is counted
        cuda.syncthreads()
        if thread == 0:
            is_last[0] = cuda.atomic.inc(arrived, place, np.uint32(other - one)) == other - one  # and it is 0 again
        cuda.syncthreads()
        if is_last[0] != 0:
            cuda.threadfence()
            first, last = np.int32(place + one), np.int32(place + other + 1)
            for n in range(thread * 4, rows * HEAD, THREADS * 4):
                row, col = np.int32(n // HEAD), np.int32(n % HEAD)
                finish(O, lse, results, first, last, row, col, o_row, apart[3], batch, head * group, top + row)
        at = end
        begin += tiles
        plane += 1
        if plane == planes and at < behind:
            plane = np.int32(0)
            batch += 1
            tiles = tiles_of(lengths, batch)


def launches(Q, K, V, lengths, table, O, lse, problem, format, workspace):
    """O and log-sum-exp; partial results are in the workspace."""
    given = arguments(problem, Q, K, V, lengths, table, O, lse, format)
    known, planes = constants(problem.head_dim), planes_of(problem)
    heads = problem.batch * planes
    blocks = max(1, min(blocks_at_once(), heads * -(-problem.keys // BN) // WARPS))
    # A block begins a piece, and so does a head: pieces of a head follow one another if both are counted.
    results = workspace.array("results", (blocks + heads, ROWS, known["ROW"]), np.float32)
    given = *given, np.int32(planes), results, workspace.counters(heads)
    return [Launch(in_sizes(stream_k, problem, format), blocks, THREADS, given, known["SHARED_BYTES"])]
