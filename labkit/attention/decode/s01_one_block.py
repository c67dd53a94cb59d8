"""One block per head of the cache: the queries of all heads that share its keys are rows of one tile.

Each key and value is loaded once for all of them. A tile of `mma` has 16 rows, most of them empty with few queries,
which costs nothing: the tensor cores wait for memory anyway. Each warp has its own tiles of 16 keys, and a ring of them
in shared memory, filled by `cp.async` while it multiplies. Warps wait for each other only at the end, when their
partial results are merged. Pages only change where a tile begins: a table says that.
(Dao, FlashAttention-2, 2023, algorithm 1, of one tile of queries; Kwon and others, PagedAttention, 2023.)

Costs, if the keys of sequences are multiples of the tile:

    2 * batch * keys * kv_heads * HEAD / 8          copies of K and V, of 16 bytes
    2 * SLOTS * BN * HEAD * 2                       bytes of shared memory per block
    batch * kv_heads                                blocks
    0                                               bank conflicts per block

Limited by the number of blocks: with one sequence and 8 heads, 8 multiprocessors of 132 read.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import block_index, divmod_u32, kernel_and_grid
from labkit.attention.decode import operands
from labkit.attention.decode.operands import BLOCKS_PER_SM, BN, MASKED, ROWS, THREADS, WARPS
from labkit.attention.decode.tiles import attend_tile, copy_kv, load_queries, store_partial, write_o
from labkit.ladder import Launch

HEAD = 128  # columns of a tile: head_dim, padded with zeros
WORDS, STEPS, NO = HEAD // 2, HEAD // 16, HEAD // 8  # of a row; of k in Q K^T; fragments of 8 columns of O
ROW = HEAD + 8  # of a partial result: accumulators, ref_max, row_sum, and padding against bank conflicts
STAGES = 3  # tiles of K, and of V, per warp
PENDING, SLOTS = STAGES - 2, WARPS * STAGES  # copies in flight while a tile is multiplied, and tiles of a block
V_BYTE = SLOTS * BN * HEAD * 2
SHARED_BYTES = 2 * V_BYTE


@cuda.jit(launch_bounds=(THREADS, BLOCKS_PER_SM))
def one_block(Q, K, V, lengths, table, O, lse, strides, page, heads_per_kv, num_queries, causal, scale, planes):
    K_tiles = ptx.shared_array(0, (SLOTS, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (SLOTS, BN, WORDS), np.uint32)
    partials = ptx.shared_array(0, (WARPS, ROWS, ROW), np.float32)
    q = cuda.local.array((STEPS, 4), np.uint32)
    acc = cuda.local.array((NO, 4), np.float32)
    ref_max = cuda.local.array(2, np.float32)
    row_sum = cuda.local.array(2, np.float32)
    visible = cuda.local.array(2, np.int32)
    thread, (plane, batch, _) = np.int32(cuda.threadIdx.x), block_index(planes, lse.shape[0])
    lane, warp = np.int32(thread % 32), np.int32(thread // 32)
    kv_rows = np.int32(heads_per_kv * num_queries)  # of Q that share a head of K
    tiles_per_head = np.int32((kv_rows + ROWS - 1) // ROWS)  # tiles of them
    head, head_tile = divmod_u32(plane, tiles_per_head)
    row0 = np.int32(head_tile * ROWS)
    length = np.int32(lengths[batch])
    tiles = np.int32((length + BN - 1) // BN)
    q_row = np.int32(batch * strides[0][0] + head * heads_per_kv * strides[0][1])
    o_row = np.int32(batch * strides[3][0] + head * heads_per_kv * strides[3][1])
    # -- prefetch the first K and V tiles, load Q --
    for ahead in range(STAGES - 1):
        tile = np.int32(warp + ahead * WARPS)
        if tile < tiles:
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
    for tile in range(warp, tiles, WARPS):
        ptx.cp_async_wait(PENDING)
        cuda.syncwarp()  # all lanes see this tile, and are done with the previous one
        ahead = np.int32(tile + (STAGES - 1) * WARPS)
        if ahead < tiles:
            slot = np.int32(warp * STAGES + (stage + STAGES - 1) % STAGES)
            copy_kv(K_tiles, V_tiles, slot, K, V, table, strides, page, batch, head, ahead * BN, length, lane)
        ptx.cp_async_commit()
        attend_tile(acc, ref_max, row_sum, q, K_tiles, V_tiles, warp * STAGES + stage, tile * BN, visible, scale, lane)
        stage = np.int32((stage + 1) % STAGES)
    # -- merge the partial results of the warps, store O and log-sum-exp --
    cuda.syncthreads()  # all warps are done with their tiles
    store_partial(partials, warp, acc, ref_max, row_sum, lane)
    cuda.syncthreads()
    num_rows = np.int32(min(kv_rows - row0, ROWS))
    for n in range(thread * 4, num_rows * HEAD, THREADS * 4):
        row, col = np.int32(n // HEAD), np.int32(n % HEAD)
        write_o(O, lse, partials, 0, WARPS, row, col, o_row, strides[3], batch, head * heads_per_kv, row0 + row)


def utilisation(problem) -> float:
    """Share of the GPU's places for blocks that are taken on average, if all sequences have as many keys."""
    return operands.wave_utilisation(operands.count_planes(problem) * problem.batch)


def launches(Q, K, V, lengths, table, O, lse, problem, format):
    """O and log-sum-exp."""
    arguments = operands.make_arguments(problem, Q, K, V, lengths, table, O, lse, format)
    planes, kernel = operands.count_planes(problem), operands.specialise_kernel(one_block, problem, format)
    blocks = kernel_and_grid(kernel, (planes, problem.batch))
    return [Launch(*blocks, THREADS, (*arguments, np.int32(planes)), operands.shared_bytes(problem))]
