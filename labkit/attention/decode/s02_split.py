"""Several blocks share the keys of a head, and a second launch merges their partial results.

As many blocks as the GPU holds at a time read equal parts of a sequence. Each stores its accumulators, with their
ref_max and row_sum, in the workspace in float32. (Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context
inference, 2023.)

Costs, if the keys of sequences are multiples of the tile, in `parts` parts:

    2 * batch * keys * kv_heads * HEAD / 8          copies of K and V, of 16 bytes
    2 * SLOTS * BN * HEAD * 2                       bytes of shared memory per block
    batch * kv_heads * parts                        blocks
    batch * heads * parts * (HEAD + 2) * 4          bytes of partial results, of one query per sequence
    0                                               bank conflicts per block

Limited by blocks that wait for others: parts are equal only within a sequence, and heads times parts rarely equal the
blocks that the GPU holds. The second launch starts after all keys are read, and its latency counts: so each row has a
block, whose warps merge shares of the parts.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import block_index, divmod_u32, kernel_and_grid
from labkit.attention.decode import operands
from labkit.attention.decode.operands import BLOCKS_PER_SM, BN, MASKED, ROWS, THREADS, WARPS
from labkit.attention.decode.tiles import (
    attend_tile,
    combine_warps,
    copy_kv,
    load_queries,
    merge_partials,
    store_partial,
    write_o,
)
from labkit.ladder import Launch

HEAD = 128  # columns of a tile: head_dim, padded with zeros
WORDS, STEPS, NO = HEAD // 2, HEAD // 16, HEAD // 8  # of a row; of k in Q K^T; fragments of 8 columns of O
ROW = HEAD + 8  # of a partial result: accumulators, ref_max, row_sum, and padding against bank conflicts
STAGES = 3  # tiles of K, and of V, per warp
PENDING, SLOTS = STAGES - 2, WARPS * STAGES  # copies in flight while a tile is multiplied, and tiles of a block
V_BYTE = SLOTS * BN * HEAD * 2
SHARED_BYTES = 2 * V_BYTE
QUICK_TO_SIMULATE = True  # no block waits for another
MERGE_WARPS = 8  # warps that merge the parts of a row


@cuda.jit(launch_bounds=(THREADS, BLOCKS_PER_SM))
def split(Q, K, V, lengths, table, strides, page, heads_per_kv, num_queries, causal, scale, results, planes, parts):
    K_tiles = ptx.shared_array(0, (SLOTS, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (SLOTS, BN, WORDS), np.uint32)
    partials = ptx.shared_array(0, (WARPS, ROWS, ROW), np.float32)
    q = cuda.local.array((STEPS, 4), np.uint32)
    acc = cuda.local.array((NO, 4), np.float32)
    ref_max = cuda.local.array(2, np.float32)
    row_sum = cuda.local.array(2, np.float32)
    visible = cuda.local.array(2, np.int32)
    thread, (plane, part, batch) = np.int32(cuda.threadIdx.x), block_index(planes, parts)
    lane, warp = np.int32(thread % 32), np.int32(thread // 32)
    kv_rows = np.int32(heads_per_kv * num_queries)  # of Q that share a head of K
    tiles_per_head = np.int32((kv_rows + ROWS - 1) // ROWS)  # tiles of them
    head, head_tile = divmod_u32(plane, tiles_per_head)
    row0 = np.int32(head_tile * ROWS)
    length = np.int32(lengths[batch])
    tiles = np.int32((length + BN - 1) // BN)
    q_row = np.int32(batch * strides[0][0] + head * heads_per_kv * strides[0][1])
    tiles_per_part, _ = divmod_u32(tiles + parts - 1, parts)  # of each part
    first = np.int32(tiles_per_part * part + warp)
    end = np.int32(min(tiles_per_part * (part + 1), tiles))
    # -- prefetch the first K and V tiles, load Q --
    for ahead in range(STAGES - 1):
        tile = np.int32(first + ahead * WARPS)
        if tile < end:
            slot = np.int32(warp * STAGES + ahead)
            copy_kv(K_tiles, V_tiles, slot, K, V, table, strides, page, batch, head, tile * BN, length, lane)
        ptx.cp_async_commit()
    load_queries(q, Q, q_row, strides[0], row0, kv_rows, num_queries, lane)
    for r in range(2):
        ref_max[r], row_sum[r] = MASKED, 0
        _, query = divmod_u32(row0 + lane // 4 + 8 * r, num_queries)
        visible[r] = length - (num_queries - 1 - query) * causal
    for j in range(NO):
        for n in range(4):
            acc[j, n] = 0
    # -- loop over K and V tiles: wait, prefetch one ahead, S = Q K^T, update row_sum, acc += P V --
    stage = np.int32(0)
    for tile in range(first, end, WARPS):
        ptx.cp_async_wait(PENDING)
        cuda.syncwarp()  # all lanes see this tile, and are done with the previous one
        ahead = np.int32(tile + (STAGES - 1) * WARPS)
        if ahead < end:
            slot = np.int32(warp * STAGES + (stage + STAGES - 1) % STAGES)
            copy_kv(K_tiles, V_tiles, slot, K, V, table, strides, page, batch, head, ahead * BN, length, lane)
        ptx.cp_async_commit()
        attend_tile(acc, ref_max, row_sum, q, K_tiles, V_tiles, warp * STAGES + stage, tile * BN, visible, scale, lane)
        stage = np.int32((stage + 1) % STAGES)
    # -- merge the partial results of the warps, store that of the block --
    ptx.launch_release()  # not earlier: waiting blocks cost more than they gain
    cuda.syncthreads()  # all warps are done with their tiles
    store_partial(partials, warp, acc, ref_max, row_sum, lane)
    cuda.syncthreads()
    index = np.int32((batch * planes + plane) * parts + part)
    combine_warps(results, index, partials, min(kv_rows - row0, ROWS), thread)


@cuda.jit(launch_bounds=32 * MERGE_WARPS, early=True)
def merge(results, O, lse, strides, heads_per_kv, num_queries, planes, parts):
    partials = cuda.shared.array((MERGE_WARPS, 1, ROW), np.float32, alignment=16)
    plane, batch, row = block_index(planes, lse.shape[0])
    lane, warp = np.int32(cuda.threadIdx.x % 32), np.int32(cuda.threadIdx.x // 32)
    kv_rows = np.int32(heads_per_kv * num_queries)
    tiles_per_head = np.int32((kv_rows + ROWS - 1) // ROWS)
    head, head_tile = divmod_u32(plane, tiles_per_head)
    kv_row = np.int32(head_tile * ROWS + row)
    if kv_row >= kv_rows:
        return
    o_row = np.int32(batch * strides[3][0] + head * heads_per_kv * strides[3][1])
    first = np.int32((batch * planes + plane) * parts)
    begin, end = np.int32(first + parts * warp // MERGE_WARPS), np.int32(first + parts * (warp + 1) // MERGE_WARPS)
    ptx.launch_wait()
    for col in range(lane * 4, HEAD, 128):
        ref_max, row_sum, a, b, c, d = merge_partials(results, begin, end, row, col)
        ptx.store4(partials, (warp, 0, col), a, b, c, d)
        if col == 0:
            ptx.store2(partials, (warp, 0, HEAD), ref_max, row_sum)
    cuda.syncthreads()
    if warp == 0:
        for col in range(lane * 4, HEAD, 128):
            write_o(O, lse, partials, 0, MERGE_WARPS, 0, col, o_row, strides[3], batch, head * heads_per_kv, kv_row)


def count_parts(problem) -> int:
    """Into how many parts the keys of a head are divided, for all blocks to run at the same time."""
    planes = operands.count_planes(problem) * problem.batch
    return min(-(-problem.keys // (WARPS * BN)), max(1, operands.max_resident_blocks() // planes))


def utilisation(problem) -> float:
    """Share of the GPU's places for blocks that is used on average, if all sequences have equally many keys.

    It is 0 where nothing is split: `s01_one_block` does the same without a second launch.
    """
    parts = count_parts(problem)
    return operands.wave_utilisation(operands.count_planes(problem) * problem.batch * parts) if parts > 1 else 0.0


def launches(Q, K, V, lengths, table, O, lse, problem, format, workspace):
    """O and log-sum-exp; partial results are in the workspace."""
    arguments = operands.make_arguments(problem, Q, K, V, lengths, table, O, lse, format)
    *arrays, O, lse, strides, page, heads_per_kv, queries, causal, scale = arguments
    parts, planes, row = count_parts(problem), operands.count_planes(problem), operands.padded_head_dim(problem) + 8
    results = workspace.array("results", (problem.batch * planes * parts, ROWS, row), np.float32)
    divisions = np.int32(planes), np.int32(parts)
    to_split = *arrays, strides, page, heads_per_kv, queries, causal, scale, results, *divisions
    to_merge = results, O, lse, strides, heads_per_kv, queries, *divisions
    blocks = kernel_and_grid(operands.specialise_kernel(split, problem, format), (planes, parts, problem.batch))
    rows = min(problem.heads_per_kv * problem.queries, ROWS)
    mergers = kernel_and_grid(operands.specialise_kernel(merge, problem, format, "HEAD"), (planes, problem.batch, rows))
    return [
        Launch(*blocks, THREADS, to_split, operands.shared_bytes(problem)),
        Launch(*mergers, 32 * MERGE_WARPS, to_merge),
    ]
