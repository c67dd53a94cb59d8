"""Asynchronous copies load rows two ahead of the one in work, and a cluster of blocks shares a wide row.

A block of `s04_one_read` has no load in flight while it sums and waits. Here shared memory has room for three rows of
both matrices: a thread that has written a vector of dx immediately copies the vector of the row after the next two into
the same slot. Registers then hold only weights and partial sums. A cluster of 8 blocks has 64k columns; its blocks
exchange their sums through distributed shared memory.

Costs in passes over memory, each of which reads or writes a matrix once:

    3       clusters: dy and x read, dx written
    0       merge_partials: one row per cluster
    3       passes in all

Limited by memory if a row has one block. Blocks that share a row synchronise once per row, and the barrier waits until
all stores of the previous row have arrived. In bfloat16, where a row has half the bytes, `s03_sums_first` is then
faster.

Parts: `block_all_sum2` of `labkit.parts.sums`; `copy_async`, `load_float32`, `load_shared`, `store`, `store_float32` of
`labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.norm.rows_backward.partial_sums import allocate_partials, merge_launch
from labkit.parts.sums import block_all_sum2
from labkit.parts.vector_widths import specialise_vectors, vector_width, word_view
from labkit.parts.vectors import copy_async, load_float32, load_shared, store, store_float32

CENTRED = True  # False for RMS norm
CLUSTER = 8  # blocks per row
CLUSTER_SIZES = 1, 2, 4, 8
WIDTH = 4  # values per vector
VECTORS = 2  # vectors per thread
COLUMNS = 8  # per thread
ELEMENT = np.float32  # element type of rows
STAGES = 3  # rows in shared memory
PENDING = STAGES - 1  # rows in flight while one is summed
WARP, USUAL_THREADS, MAX_THREADS = 32, 512, 1024  # threads per warp; per block, usually and for wide rows
MAX_WARPS = MAX_THREADS // WARP
SM_THREADS = 1024  # with 64 registers each; threads that load one value at a time need more


@cuda.jit
def clusters(dy, x, weight, mean, rstd, dx, partials):
    smem = cuda.shared.array(0, ELEMENT, alignment=16)
    dy_reg = cuda.local.array(WIDTH, np.float32)
    x_reg = cuda.local.array(WIDTH, np.float32)
    weight_reg = cuda.local.array((VECTORS, WIDTH), np.float32)
    dweight_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    dbias_sum = cuda.local.array((VECTORS, WIDTH), np.float32)
    warp_partials = cuda.shared.array((2, 2, MAX_WARPS), np.float32)  # two buffers, used alternately by rows
    block_partials = cuda.shared.array((2, 2, CLUSTER), np.float32)
    t, threads, rank = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.uint32(ptx.cluster_rank())
    cluster, num_clusters = np.uint32(cuda.blockIdx.x // CLUSTER), np.uint32(cuda.gridDim.x // CLUSTER)
    rows, columns = np.uint32(x.shape[0]), np.uint32(weight.shape[0])
    columns_per_block = np.uint32((columns // WIDTH + CLUSTER - 1) // CLUSTER * WIDTH)
    first = min(rank * columns_per_block, columns)
    count = np.uint32(min(first + columns_per_block, columns) - first)
    num_values, row_capacity = np.float32(columns), np.uint32(VECTORS * WIDTH * threads)

    # -- load the first rows --
    for stage in range(STAGES):
        row = np.uint32(cluster + stage * num_clusters)
        if row < rows:
            for k in range(VECTORS):
                i = np.uint32(WIDTH * (k * threads + t))
                if i < count:
                    copy_async(smem, 2 * stage * row_capacity + i, dy, row, first + i)
                    copy_async(smem, (2 * stage + 1) * row_capacity + i, x, row, first + i)
        ptx.cp_async_commit()
    # -- load the weights --
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            load_float32(weight, first + i, weight_reg[k])
        for e in range(WIDTH):
            dweight_sum[k, e] = dbias_sum[k, e] = np.float32(0)
    if CLUSTER > 1:
        ptx.cluster_sync()

    phase = stage = np.uint32(0)
    average = next_average = np.float32(0)
    next_scale = rstd[cluster]
    if CENTRED:
        next_average = mean[cluster]
    # -- sums of the row --
    for r in range(cluster, rows, num_clusters):
        row = np.uint32(r)
        dy_offset, x_offset = np.uint32(2 * stage * row_capacity), np.uint32((2 * stage + 1) * row_capacity)
        average, scale = next_average, next_scale
        next_row = min(row + num_clusters, rows - np.uint32(1))
        next_scale = rstd[next_row]
        if CENTRED:
            next_average = mean[next_row]
        ptx.cp_async_wait(PENDING)
        g_sum = gx_sum = np.float32(0)
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load_shared(smem, dy_offset + i, dy_reg)
                load_shared(smem, x_offset + i, x_reg)
                for e in range(WIDTH):
                    x_hat, g = (x_reg[e] - average) * scale, dy_reg[e] * weight_reg[k, e]
                    dweight_sum[k, e] += dy_reg[e] * x_hat
                    dbias_sum[k, e] += dy_reg[e]
                    g_sum += g
                    gx_sum += g * x_hat
        g_sum, gx_sum = block_all_sum2(g_sum, gx_sum, warp_partials[phase])
        # -- exchange within the cluster --
        if CLUSTER > 1:
            if t < CLUSTER:
                ptx.cluster_store(block_partials, (phase, 0, rank), t, g_sum)
                ptx.cluster_store(block_partials, (phase, 1, rank), t, gx_sum)
            ptx.cluster_sync()
            g_sum = gx_sum = np.float32(0)
            for block in range(CLUSTER):
                g_sum += block_partials[phase, 0, block]
                gx_sum += block_partials[phase, 1, block]
        phase = np.uint32(1 - phase)
        # -- write dx, load the row after the next two --
        g_sum = g_sum / num_values if CENTRED else np.float32(0)
        gx_sum /= num_values
        for k in range(VECTORS):
            i = np.uint32(WIDTH * (k * threads + t))
            if i < count:
                load_shared(smem, dy_offset + i, dy_reg)
                load_shared(smem, x_offset + i, x_reg)
                for e in range(WIDTH):
                    x_hat, g = (x_reg[e] - average) * scale, dy_reg[e] * weight_reg[k, e]
                    dy_reg[e] = (g - g_sum - x_hat * gx_sum) * scale
                store(dx, row, first + i, dy_reg)
                if row + STAGES * num_clusters < rows:
                    copy_async(smem, dy_offset + i, dy, np.uint32(row + STAGES * num_clusters), first + i)
                    copy_async(smem, x_offset + i, x, np.uint32(row + STAGES * num_clusters), first + i)
        ptx.cp_async_commit()
        stage = np.uint32((stage + 1) % STAGES)
    # -- write the partial sums of the cluster --
    for k in range(VECTORS):
        i = np.uint32(WIDTH * (k * threads + t))
        if i < count:
            store_float32(partials, cluster, first + i, dweight_sum[k])
            if CENTRED:
                store_float32(partials, num_clusters + cluster, first + i, dbias_sum[k])


def geometry(problem, itemsize: int, width: int) -> tuple[int, int, int, int, int]:
    """Return resident clusters, blocks per cluster and per SM, threads and shared bytes per block."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for max_threads in (USUAL_THREADS, MAX_THREADS):
        for blocks in CLUSTER_SIZES:
            vectors = -(-problem.columns // (width * blocks))  # per block
            threads = WARP * -(-vectors * width // (COLUMNS * WARP))
            if threads <= max_threads:
                blocks_per_sm = max(1, SM_THREADS // threads // (1 if width > 1 else 2))
                smem_bytes = 2 * STAGES * COLUMNS * threads * itemsize
                return min(problem.rows, blocks_per_sm * (sms // blocks)), blocks, blocks_per_sm, threads, smem_bytes
    raise TooLarge(
        f"a row has {problem.columns} values, and a cluster keeps {max(CLUSTER_SIZES) * MAX_THREADS * COLUMNS}"
    )


def launches(dy, x, weight, mean, rstd, dx, dweight, dbias, problem, workspace, format=FP32):
    """Return the launches for all gradients; RMS norm has neither mean nor dbias, and other arrays replace them."""
    problem.check(dy, x, weight, mean, rstd, dx, dweight, dbias, dtype=format.dtype)
    mean, dbias = (mean, dbias) if problem.is_centred else (rstd, dweight)
    width = vector_width(dy, x, weight, dx)
    num_clusters, blocks, blocks_per_sm, threads, smem_bytes = geometry(problem, format.itemsize, width)
    partials = allocate_partials(problem, num_clusters, workspace)  # a row per cluster for dweight, then for dbias
    constants = {"VECTORS": COLUMNS // width, "CENTRED": problem.is_centred, "CLUSTER": blocks}
    bounds = threads, blocks_per_sm
    kernel = specialise_vectors(clusters, format.dtype, width, bounds=bounds, cluster=blocks, **constants)
    arrays = word_view(dy, width), word_view(x, width), weight, mean, rstd, word_view(dx, width), partials
    gradients = Launch(kernel, num_clusters * blocks, threads, arrays, smem_bytes)
    return [gradients, merge_launch(problem, partials, dweight, dbias)]
