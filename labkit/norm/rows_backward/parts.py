"""What blocks found going down the columns, merged into the gradients of weight and bias, always in the same order."""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.ladder import Launch

CENTRED = True  # not so in RMS norm, which has no dbias
WARP, WARPS = 32, 32  # threads of a warp, and warps of a block


@cuda.jit(launch_bounds=WARP * WARPS)
def merged(parts, dweight, dbias):
    """`parts` has a row of sums for dweight of each block, and then one for dbias; each lane takes a column of them."""
    of_warps = cuda.shared.array((WARPS, WARP), np.float32)
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    i, count = cuda.blockIdx.x * WARP + lane, parts.shape[0] // cuda.gridDim.y
    total = np.float32(0)
    if i < parts.shape[1]:
        for part in range(warp, count, WARPS):
            total += parts[cuda.blockIdx.y * count + part, i]
    of_warps[warp, lane] = total
    cuda.syncthreads()
    if warp == 0 and i < parts.shape[1]:
        for other in range(1, WARPS):
            total += of_warps[other, lane]
        if cuda.blockIdx.y == 0:
            dweight[i] = total
        elif CENTRED:
            dbias[i] = total


def room(problem, blocks: int, workspace):
    """Memory for what so many blocks find: a row of each for dweight, and in layer norm one for dbias."""
    return workspace.array("parts", ((2 if problem.is_centred else 1) * blocks, problem.columns), np.float32)


@cache
def kernel_for(is_centred: bool):
    """The kernel, or its copy for RMS norm."""
    return specialise(merged, CENTRED=is_centred)


def merge(problem, parts, dweight, dbias) -> Launch:
    """The launch that follows."""
    grid = -(-problem.columns // WARP), 2 if problem.is_centred else 1
    return Launch(kernel_for(problem.is_centred), grid, WARP * WARPS, (parts, dweight, dbias))
