"""The merge of partial sums of columns into dweight and dbias, in a fixed order."""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.ladder import Launch

CENTRED = True  # False for RMS norm, which has no dbias
THREADS = 256
MAX_DOWN = 32  # threads per column: then 8 neighbours read 32 bytes of a row
LOADS = 4  # loads in flight per thread
specialise_once = cache(specialise)  # one copy per kind of norm


@cuda.jit(launch_bounds=THREADS)
def merged(parts, across, dweight, dbias):
    """Merge `across` columns per block; `parts` has one row of sums per block for dweight, then those for dbias."""
    loaded = cuda.local.array(LOADS, np.float32)
    thread_sums = cuda.shared.array(THREADS, np.float32)
    t = np.uint32(cuda.threadIdx.x)
    i, down = np.uint32(cuda.blockIdx.x * across + t % across), np.uint32(THREADS // across)
    count = np.uint32(parts.shape[0] // cuda.gridDim.y)
    column_sum = np.float32(0)
    for start in range(t // across, count, LOADS * down):
        for k in range(LOADS):
            part = np.uint32(start + k * down)
            loaded[k] = np.float32(0)
            if part < count and i < parts.shape[1]:
                loaded[k] = parts[np.uint32(cuda.blockIdx.y * count + part), i]
        for k in range(LOADS):
            column_sum += loaded[k]
    thread_sums[t] = column_sum
    offset = np.uint32(THREADS // 2)
    while offset >= across:
        cuda.syncthreads()
        if t < offset:
            column_sum += thread_sums[t + offset]
            thread_sums[t] = column_sum
        offset = np.uint32(offset // 2)
    if t < across and i < parts.shape[1]:
        if cuda.blockIdx.y == 0:
            dweight[i] = column_sum
        elif CENTRED:
            dbias[i] = column_sum


def allocate_parts(problem, blocks: int, workspace):
    """Return memory for the partial sums of blocks: a row per block for dweight, and in layer norm one for dbias."""
    return workspace.array("parts", ((2 if problem.is_centred else 1) * blocks, problem.columns), np.float32)


def merge(problem, parts, dweight, dbias) -> Launch:
    """Return the launch that merges partial sums."""
    gradients = 2 if problem.is_centred else 1
    down = min(MAX_DOWN, 1 << (-(-parts.shape[0] // (gradients * LOADS)) - 1).bit_length())
    grid = -(-problem.columns * down // THREADS), gradients
    arguments = parts, np.uint32(THREADS // down), dweight, dbias
    return Launch(specialise_once(merged, CENTRED=problem.is_centred), grid, THREADS, arguments)
