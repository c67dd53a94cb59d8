"""Blocks that wait for one another."""

import numpy as np

from labkit import cuda


@cuda.jit(device=True)
def meet(arrived, counter, blocks):
    """Waits until so many blocks have come here, and sees what they wrote before. All threads must call.

    The counter `arrived[counter]` (uint32) must be 0 before the launch, and is so again after it; a kernel meets at
    each of them once. All these blocks must run at the same time: the kernel is `cuda.jit(cooperative=True)`.
    (CUDA C++ Programming Guide, "Grid Synchronization", is the same for all blocks of a grid.)
    """
    cuda.threadfence()  # what this thread wrote can be seen before the block is counted
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        cuda.atomic.inc(arrived, counter, np.uint32(blocks - 1))
        while cuda.atomic.add(arrived, counter, np.uint32(0)) != 0:
            pass
        cuda.threadfence()
    cuda.syncthreads()
