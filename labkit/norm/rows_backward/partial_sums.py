"""The merge of partial sums of columns into dweight and dbias, in a fixed order."""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.ladder import Launch

CENTRED = True  # False for RMS norm, which has no dbias
THREADS = 256
MAX_COLUMN_THREADS = 32  # threads per column: then 8 neighbours read 32 bytes of a row
LOADS = 4  # loads in flight per thread
specialise_once = cache(specialise)  # one copy per kind of norm


@cuda.jit(launch_bounds=THREADS)
def merge_partials(partials, block_columns, dweight, dbias):
    """Merge `block_columns` columns per block; `partials` has a row of dweight sums per block, then those of dbias."""
    loaded = cuda.local.array(LOADS, np.float32)
    thread_sums = cuda.shared.array(THREADS, np.float32)
    t = np.uint32(cuda.threadIdx.x)
    i = np.uint32(cuda.blockIdx.x * block_columns + t % block_columns)
    column_threads = np.uint32(THREADS // block_columns)
    num_blocks = np.uint32(partials.shape[0] // cuda.gridDim.y)
    column_sum = np.float32(0)
    for start in range(t // block_columns, num_blocks, LOADS * column_threads):
        for k in range(LOADS):
            block = np.uint32(start + k * column_threads)
            loaded[k] = np.float32(0)
            if block < num_blocks and i < partials.shape[1]:
                loaded[k] = partials[np.uint32(cuda.blockIdx.y * num_blocks + block), i]
        for k in range(LOADS):
            column_sum += loaded[k]
    thread_sums[t] = column_sum
    offset = np.uint32(THREADS // 2)
    while offset >= block_columns:
        cuda.syncthreads()
        if t < offset:
            column_sum += thread_sums[t + offset]
            thread_sums[t] = column_sum
        offset = np.uint32(offset // 2)
    if t < block_columns and i < partials.shape[1]:
        if cuda.blockIdx.y == 0:
            dweight[i] = column_sum
        elif CENTRED:
            dbias[i] = column_sum


def allocate_partials(problem, blocks: int, workspace):
    """Return memory for the partial sums of blocks: a row per block for dweight, and in layer norm one for dbias."""
    return workspace.array("partials", ((2 if problem.is_centred else 1) * blocks, problem.columns), np.float32)


def merge_launch(problem, partials, dweight, dbias) -> Launch:
    """Return the launch that merges partial sums."""
    gradients = 2 if problem.is_centred else 1
    column_threads = min(MAX_COLUMN_THREADS, 1 << (-(-partials.shape[0] // (gradients * LOADS)) - 1).bit_length())
    grid = -(-problem.columns * column_threads // THREADS), gradients
    arguments = partials, np.uint32(THREADS // column_threads), dweight, dbias
    return Launch(specialise_once(merge_partials, CENTRED=problem.is_centred), grid, THREADS, arguments)
