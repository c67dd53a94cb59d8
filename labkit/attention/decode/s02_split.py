"""The keys of a head are divided among several blocks, and a second launch puts their partial results together.

As many blocks as the GPU holds at the same time read at once, each an equal part of a sequence. What a block found, its
sums with their origin and total, goes to the workspace in float32. (Dao, Haziza, Massa and Sizov, Flash-Decoding for
long-context inference, 2023.)

Costs, of sequences whose keys are a multiple of the tile, in `parts` parts:

    2 * batch * keys * kv_heads * HEAD / 8          copies of K and V, of 16 bytes
    2 * SLOTS * BN * HEAD * 2                       bytes of shared memory per block
    batch * kv_heads * parts                        blocks
    batch * heads * parts * (HEAD + 2) * 4          bytes of partial results, of one query a sequence
    0                                               bank conflicts per block

Limited by blocks that wait for others: parts are equal within a sequence alone, and heads times parts seldom are as
many as the blocks that the GPU holds. The second launch begins once all keys are read, and waits for what is left; a
row has a block of its own then, whose warps put parts of the parts together.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import divided, place_of_block, within_limits
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
    merged,
    planes_of,
    put,
    share_taken,
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
QUICK = True  # to simulate: no block waits for what another one counts
MERGERS = 8  # warps that put the parts of a row together


@cuda.jit(launch_bounds=(THREADS, BLOCKS_OF_SM))
def split(Q, K, V, lengths, table, apart, page, group, queries, causal, scale, results, planes, parts):
    K_tiles = ptx.shared_array(0, (SLOTS, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (SLOTS, BN, WORDS), np.uint32)
    of_warps = ptx.shared_array(0, (WARPS, ROWS, ROW), np.float32)
    q = cuda.local.array((STEPS, 4), np.uint32)
    sums = cuda.local.array((NO, 4), np.float32)
    origin = cuda.local.array(2, np.float32)
    total = cuda.local.array(2, np.float32)
    seen = cuda.local.array(2, np.int32)
    thread, (plane, part, batch) = np.int32(cuda.threadIdx.x), place_of_block(planes, parts)
    lane, warp = np.int32(thread % 32), np.int32(thread // 32)
    members = np.int32(group * queries)  # that share a head of K
    of_head = np.int32((members + ROWS - 1) // ROWS)  # tiles of them
    head, own = divided(plane, of_head)
    top = np.int32(own * ROWS)
    length = np.int32(lengths[batch])
    tiles = np.int32((length + BN - 1) // BN)
    q_row = np.int32(batch * apart[0][0] + head * group * apart[0][1])
    share, _ = divided(tiles + parts - 1, parts)  # of each part
    first = np.int32(share * part + warp)
    behind = np.int32(min(share * (part + 1), tiles))

    for ahead in range(STAGES - 1):
        tile = np.int32(first + ahead * WARPS)
        if tile < behind:
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
    for tile in range(first, behind, WARPS):
        ptx.cp_async_wait(PENDING)
        cuda.syncwarp()  # this tile is there for all lanes, and all have done with the one before
        ahead = np.int32(tile + (STAGES - 1) * WARPS)
        if ahead < behind:
            slot = np.int32(warp * STAGES + (stage + STAGES - 1) % STAGES)
            copy(K_tiles, V_tiles, slot, K, V, table, apart, page, batch, head, ahead * BN, length, lane)
        ptx.cp_async_commit()
        attend(sums, origin, total, q, K_tiles, V_tiles, warp * STAGES + stage, tile * BN, seen, scale, lane)
        stage = np.int32((stage + 1) % STAGES)

    ptx.launch_release()  # not before: blocks that wait cost the GPU more than they gain
    cuda.syncthreads()  # all warps have done with their tiles
    put(of_warps, warp, sums, origin, total, lane)
    cuda.syncthreads()
    place = np.int32((batch * planes + plane) * parts + part)
    keep(results, place, of_warps, min(members - top, ROWS), thread)


@cuda.jit(launch_bounds=32 * MERGERS, early=True)
def merge(results, O, lse, apart, group, queries, planes, parts):
    of_warps = cuda.shared.array((MERGERS, 1, ROW), np.float32, alignment=16)
    plane, batch, row = place_of_block(planes, lse.shape[0])
    lane, warp = np.int32(cuda.threadIdx.x % 32), np.int32(cuda.threadIdx.x // 32)
    members = np.int32(group * queries)
    of_head = np.int32((members + ROWS - 1) // ROWS)
    head, own = divided(plane, of_head)
    member = np.int32(own * ROWS + row)
    if member >= members:
        return
    o_row = np.int32(batch * apart[3][0] + head * group * apart[3][1])
    first = np.int32((batch * planes + plane) * parts)
    begin, behind = np.int32(first + parts * warp // MERGERS), np.int32(first + parts * (warp + 1) // MERGERS)
    ptx.launch_wait()
    for col in range(lane * 4, HEAD, 128):
        origin, total, a, b, c, d = merged(results, begin, behind, row, col)
        ptx.store4(of_warps, (warp, 0, col), a, b, c, d)
        if col == 0:
            ptx.store2(of_warps, (warp, 0, HEAD), origin, total)
    cuda.syncthreads()
    if warp == 0:
        for col in range(lane * 4, HEAD, 128):
            finish(O, lse, of_warps, 0, MERGERS, 0, col, o_row, apart[3], batch, head * group, member)


def parts_of(problem) -> int:
    """Into how many parts the keys of a head are divided, for all blocks to run at the same time."""
    most = -(-problem.keys // (WARPS * BN))
    return min(most, max(1, blocks_at_once() // (planes_of(problem) * problem.batch)))


def busy(problem) -> float:
    """Share of the GPU's places for blocks that are taken on average, if all sequences have as many keys.

    It is 0 where nothing is split: `s01_one_block` does the same without a second launch.
    """
    parts = parts_of(problem)
    return share_taken(planes_of(problem) * problem.batch * parts) if parts > 1 else 0.0


def launches(Q, K, V, lengths, table, O, lse, problem, format, workspace):
    """O and log-sum-exp; partial results are in the workspace."""
    *arrays, O, lse, apart, page, group, queries, causal, scale = arguments(
        problem, Q, K, V, lengths, table, O, lse, format
    )
    of_split, of_merge = in_sizes(split, problem, format), in_sizes(merge, problem, format, "HEAD", "ROW")
    known, parts, planes = constants(problem.head_dim), parts_of(problem), planes_of(problem)
    rows = min(problem.group * problem.queries, ROWS)
    results = workspace.array("results", (problem.batch * planes * parts, ROWS, known["ROW"]), np.float32)
    divisions = np.int32(planes), np.int32(parts)
    given = *arrays, apart, page, group, queries, causal, scale, results, *divisions
    together = results, O, lse, apart, group, queries, *divisions
    return [
        Launch(*within_limits(of_split, (planes, parts, problem.batch)), THREADS, given, known["SHARED_BYTES"]),
        Launch(*within_limits(of_merge, (planes, problem.batch, rows)), 32 * MERGERS, together),
    ]
