"""What blocks found going down the columns, merged into the gradients of weight and bias, always in the same order."""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.ladder import Launch

CENTRED = True  # not so in RMS norm, which has no dbias
THREADS = 256
MOST_DOWN = 32  # threads that share a column, so that 8 stand side by side, with 32 bytes
LOADS = 4  # that a thread has under way


@cuda.jit(launch_bounds=THREADS)
def merged(parts, across, dweight, dbias):
    """`parts` has a row of sums for dweight of each block, and then one for dbias; a block merges so many columns."""
    own = cuda.local.array(LOADS, np.float32)
    of_threads = cuda.shared.array(THREADS, np.float32)
    t = np.uint32(cuda.threadIdx.x)
    i, down = np.uint32(cuda.blockIdx.x * across + t % across), np.uint32(THREADS // across)
    count = np.uint32(parts.shape[0] // cuda.gridDim.y)
    total = np.float32(0)
    for start in range(t // across, count, LOADS * down):
        for load in range(LOADS):
            part = np.uint32(start + load * down)
            own[load] = np.float32(0)
            if part < count and i < parts.shape[1]:
                own[load] = parts[np.uint32(cuda.blockIdx.y * count + part), i]
        for load in range(LOADS):
            total += own[load]
    of_threads[t] = total
    away = np.uint32(THREADS // 2)
    while away >= across:
        cuda.syncthreads()
        if t < away:
            total += of_threads[t + away]
            of_threads[t] = total
        away = np.uint32(away // 2)
    if t < across and i < parts.shape[1]:
        if cuda.blockIdx.y == 0:
            dweight[i] = total
        elif CENTRED:
            dbias[i] = total


@cache
def kernel_for(is_centred: bool):
    """The kernel, or its copy for RMS norm."""
    return specialise(merged, CENTRED=is_centred)


def room(problem, blocks: int, workspace):
    """Memory for what so many blocks find: a row of each for dweight, and in layer norm one for dbias."""
    return workspace.array("parts", ((2 if problem.is_centred else 1) * blocks, problem.columns), np.float32)


def merge(problem, parts, dweight, dbias) -> Launch:
    """The launch that follows."""
    gradients = 2 if problem.is_centred else 1
    down = min(MOST_DOWN, 1 << (-(-parts.shape[0] // (gradients * LOADS)) - 1).bit_length())
    grid = -(-problem.columns * down // THREADS), gradients
    arguments = parts, np.uint32(THREADS // down), dweight, dbias
    return Launch(kernel_for(problem.is_centred), grid, THREADS, arguments)
