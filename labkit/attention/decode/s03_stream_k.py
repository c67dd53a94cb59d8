"""Stream-K: one list of all tiles of all heads, divided evenly among as many blocks as the GPU holds.

A block starts somewhere in a head and ends somewhere in another. If several blocks share a head, the last one to finish
merges the partial results, always in the order of the keys: the bits do not depend on which block that is. One launch
does it all, also for sequences of different lengths, and leaves the counters at 0 for the next.
(Osama, Merrill, Cecka, Garland and Owens, Stream-K, 2023; Sanovar and others, Lean Attention, 2024.)

Costs, if the keys of sequences are multiples of the tile:

    2 * batch * keys * kv_heads * HEAD / 8          copies of K and V, of 16 bytes
    2 * SLOTS * BN * HEAD * 2                       bytes of shared memory per block
    min(132 * BLOCKS_PER_SM, batch * kv_heads * keys // (WARPS * BN))    blocks, on an H100
    0                                               bank conflicts per block

Limited by memory.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import divmod_u32
from labkit.attention.decode import operands
from labkit.attention.decode.operands import BLOCKS_PER_SM, BN, MASKED, ROWS, THREADS, WARPS
from labkit.attention.decode.tiles import attend_tile, combine_warps, copy_kv, load_queries, store_partial, write_o
from labkit.ladder import Launch

HEAD = 128  # columns of a tile: head_dim, padded with zeros
WORDS, STEPS, NO = HEAD // 2, HEAD // 16, HEAD // 8  # of a row; of k in Q K^T; fragments of 8 columns of O
ROW = HEAD + 8  # of a partial result: accumulators, ref_max, row_sum, and padding against bank conflicts
STAGES = 3  # tiles of K, and of V, per warp
PENDING, SLOTS = STAGES - 2, WARPS * STAGES  # copies in flight while a tile is multiplied, and tiles of a block
V_BYTE = SLOTS * BN * HEAD * 2
SHARED_BYTES = 2 * V_BYTE


@cuda.jit(device=True)
def count_tiles(lengths, batch):
    """Number of tiles of a head of a sequence: at least one, since O is stored even without keys."""
    return max(1, np.int32((lengths[batch] + BN - 1) // BN))


@cuda.jit(device=True)
def block_begin(block, per_block, extra):
    """Start of a block's part of the list: the first `extra` blocks have one tile more than the others."""
    return np.int32(block * per_block + min(block, extra))


@cuda.jit(device=True)
def owner(tile, per_block, extra):
    """Block whose part of the list has a tile."""
    if tile < extra * (per_block + 1):
        block, _ = divmod_u32(tile, per_block + 1)
    else:
        block, _ = divmod_u32(tile - extra, per_block)
    return block


@cuda.jit(launch_bounds=(THREADS, BLOCKS_PER_SM))
def stream_k(
    Q, K, V, lengths, table, O, lse, strides, page, heads_per_kv, num_queries, causal, scale, planes, results, arrived
):
    K_tiles = ptx.shared_array(0, (SLOTS, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (SLOTS, BN, WORDS), np.uint32)
    partials = ptx.shared_array(0, (WARPS, ROWS, ROW), np.float32)
    is_last = cuda.shared.array(1, np.uint32)
    q = cuda.local.array((STEPS, 4), np.uint32)
    acc = cuda.local.array((NO, 4), np.float32)
    ref_max = cuda.local.array(2, np.float32)
    row_sum = cuda.local.array(2, np.float32)
    visible = cuda.local.array(2, np.int32)
    thread, block = np.int32(cuda.threadIdx.x), np.int32(cuda.blockIdx.x)
    lane, warp = np.int32(thread % 32), np.int32(thread // 32)
    kv_rows = np.int32(heads_per_kv * num_queries)  # of Q that share a head of K
    tiles_per_head = np.int32((kv_rows + ROWS - 1) // ROWS)  # tiles of them
    # -- this block's part of the list, and the head where it begins --
    all_tiles = np.int32(0)
    for sequence in range(lengths.shape[0]):
        all_tiles += count_tiles(lengths, sequence) * planes
    per_block, extra = divmod_u32(all_tiles, cuda.gridDim.x)
    position, block_end = block_begin(block, per_block, extra), block_begin(block + 1, per_block, extra)
    if position == block_end:
        return
    batch, begin, tiles = np.int32(0), np.int32(0), count_tiles(lengths, 0)
    while begin + tiles * planes <= position:
        begin += tiles * planes
        batch += 1
        tiles = count_tiles(lengths, batch)
    plane, _ = divmod_u32(position - begin, tiles)
    begin += plane * tiles
    while position < block_end:
        head_end = np.int32(min(begin + tiles, block_end))
        length, (head, head_tile) = np.int32(lengths[batch]), divmod_u32(plane, tiles_per_head)
        row0 = np.int32(head_tile * ROWS)
        q_row = np.int32(batch * strides[0][0] + head * heads_per_kv * strides[0][1])
        o_row = np.int32(batch * strides[3][0] + head * heads_per_kv * strides[3][1])
        first, end = np.int32(position - begin + warp), np.int32(min(head_end - begin, (length + BN - 1) // BN))
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
            attend_tile(
                acc, ref_max, row_sum, q, K_tiles, V_tiles, warp * STAGES + stage, tile * BN, visible, scale, lane
            )
            stage = np.int32((stage + 1) % STAGES)
        # -- merge the partial results of the warps, store that of the block --
        cuda.syncthreads()  # all warps are done with their tiles
        store_partial(partials, warp, acc, ref_max, row_sum, lane)
        cuda.syncthreads()
        index = np.int32(batch * planes + plane)  # of all heads
        first_block, last_block = owner(begin, per_block, extra), owner(begin + tiles - 1, per_block, extra)
        num_rows = np.int32(min(kv_rows - row0, ROWS))
        combine_warps(results, index + block, partials, num_rows, thread)
        # -- the last block of a head: merge its blocks, store O and log-sum-exp --
        cuda.threadfence()  # what this thread wrote can be seen before the block is counted
        cuda.syncthreads()
        if thread == 0:
            # the last block's increment sets the counter to 0 again
            is_last[0] = (
                cuda.atomic.inc(arrived, index, np.uint32(last_block - first_block)) == last_block - first_block
            )
        cuda.syncthreads()
        if is_last[0] != 0:
            cuda.threadfence()
            first, end = np.int32(index + first_block), np.int32(index + last_block + 1)
            for n in range(thread * 4, num_rows * HEAD, THREADS * 4):
                row, col = np.int32(n // HEAD), np.int32(n % HEAD)
                write_o(
                    O, lse, results, first, end, row, col, o_row, strides[3], batch, head * heads_per_kv, row0 + row
                )
        # -- next head --
        position = head_end
        begin += tiles
        plane += 1
        if plane == planes and position < block_end:
            plane = np.int32(0)
            batch += 1
            tiles = count_tiles(lengths, batch)


def launches(Q, K, V, lengths, table, O, lse, problem, format, workspace):
    """O and log-sum-exp; partial results are in the workspace."""
    arguments = operands.make_arguments(problem, Q, K, V, lengths, table, O, lse, format)
    planes, row = operands.count_planes(problem), operands.padded_head_dim(problem) + 8
    heads = problem.batch * planes
    blocks = max(1, min(operands.max_resident_blocks(), heads * -(-problem.keys // BN) // WARPS))
    # A new block and a new head each start a partial result: indices that count both keep those of a head together.
    results = workspace.array("results", (blocks + heads, ROWS, row), np.float32)
    arguments = *arguments, np.int32(planes), results, workspace.counters(heads)
    kernel = operands.specialise_kernel(stream_k, problem, format)
    return [Launch(kernel, blocks, THREADS, arguments, operands.shared_bytes(problem))]
