"""Barrier between thread blocks of one launch."""

import numpy as np

from labkit import cuda


@cuda.jit(device=True)
def sync_blocks(arrived, counter, num_blocks):
    """Wait until `num_blocks` blocks have called this, and make their earlier writes visible. All threads must call.

    The counter `arrived[counter]` (uint32) is 0 before the launch and 0 after it; a kernel uses each counter once.
    All these blocks must be resident at the same time: the kernel is `cuda.jit(cooperative=True)`.
    (CUDA C++ Programming Guide, "Grid Synchronization": the same for all blocks of a grid.)
    """
    cuda.threadfence()  # this thread's writes are visible before the block is counted
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        cuda.atomic.inc(arrived, counter, np.uint32(num_blocks - 1))
        while cuda.atomic.add(arrived, counter, np.uint32(0)) != 0:
            pass
        cuda.threadfence()
    cuda.syncthreads()
