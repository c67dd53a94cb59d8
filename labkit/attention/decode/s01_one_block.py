"""A block a head of the cache: the queries of all heads that share its keys are rows of one tile.

Each key and value crosses memory once, for all of them. A tile of `mma` has 16 rows, and a few queries leave most of
them empty, which costs nothing: the tensor cores wait for memory anyway. Each warp has tiles of 16 keys of its own, and
a ring of them in shared memory, which `cp.async` fills while it multiplies; no warp waits for another before the end,
when their partial results are put together. A page begins where a table says, and that is all that pages change.
(Dao, FlashAttention-2, 2023, algorithm 1, of one tile of queries; Kwon and others, PagedAttention, 2023.)

Costs, of sequences whose keys are a multiple of the tile:

    2 * batch * keys * kv_heads * HEAD / 8          copies of K and V, of 16 bytes
    2 * SLOTS * BN * HEAD * 2                       bytes of shared memory per block
    batch * kv_heads                                blocks
    0                                               bank conflicts per block

Limited by how few blocks there are: with one sequence and 8 heads, 8 multiprocessors of 132 read.
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
    constants,
    copy,
    finish,
    in_sizes,
    load_queries,
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


@cuda.jit(launch_bounds=(THREADS, BLOCKS_OF_SM))
def one_block(Q, K, V, lengths, table, O, lse, apart, page, group, queries, causal, scale, planes):
    K_tiles = ptx.shared_array(0, (SLOTS, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (SLOTS, BN, WORDS), np.uint32)
    of_warps = ptx.shared_array(0, (WARPS, ROWS, ROW), np.float32)
    q = cuda.local.array((STEPS, 4), np.uint32)
    sums = cuda.local.array((NO, 4), np.float32)
    origin = cuda.local.array(2, np.float32)
    total = cuda.local.array(2, np.float32)
    seen = cuda.local.array(2, np.int32)
    thread, (plane, batch, _) = np.int32(cuda.threadIdx.x), place_of_block(planes, lse.shape[0])
    lane, warp = np.int32(thread % 32), np.int32(thread // 32)
    members = np.int32(group * queries)  # that share a head of K
    of_head = np.int32((members + ROWS - 1) // ROWS)  # tiles of them
    head, own = divided(plane, of_head)
    top = np.int32(own * ROWS)
    length = np.int32(lengths[batch])
    tiles = np.int32((length + BN - 1) // BN)
    q_row = np.int32(batch * apart[0][0] + head * group * apart[0][1])
    o_row = np.int32(batch * apart[3][0] + head * group * apart[3][1])

    for ahead in range(STAGES - 1):
        tile = np.int32(warp + ahead * WARPS)
        if tile < tiles:
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
    for tile in range(warp, tiles, WARPS):
        ptx.cp_async_wait(PENDING)
        cuda.syncwarp()  # this tile is there for all lanes, and all have done with the one before
        ahead = np.int32(tile + (STAGES - 1) * WARPS)
        if ahead < tiles:
            slot = np.int32(warp * STAGES + (stage + STAGES - 1) % STAGES)
            copy(K_tiles, V_tiles, slot, K, V, table, apart, page, batch, head, ahead * BN, length, lane)
        ptx.cp_async_commit()
        attend(sums, origin, total, q, K_tiles, V_tiles, warp * STAGES + stage, tile * BN, seen, scale, lane)
        stage = np.int32((stage + 1) % STAGES)

    cuda.syncthreads()  # all warps have done with their tiles
    put(of_warps, warp, sums, origin, total, lane)
    cuda.syncthreads()
    rows = np.int32(min(members - top, ROWS))
    for n in range(thread * 4, rows * HEAD, THREADS * 4):
        row, col = np.int32(n // HEAD), np.int32(n % HEAD)
        finish(O, lse, of_warps, 0, WARPS, row, col, o_row, apart[3], batch, head * group, top + row)


def busy(problem) -> float:
    """Share of the GPU's places for blocks that are taken on average, if all sequences have as many keys."""
    return share_taken(planes_of(problem) * problem.batch)


def launches(Q, K, V, lengths, table, O, lse, problem, format):
    """O and log-sum-exp."""
    given = arguments(problem, Q, K, V, lengths, table, O, lse, format)
    planes, shared_bytes = planes_of(problem), constants(problem.head_dim)["SHARED_BYTES"]
    of_heads = within_limits(in_sizes(one_block, problem, format), (planes, problem.batch))
    return [Launch(*of_heads, THREADS, (*given, np.int32(planes)), shared_bytes)]
