"""Split-k: several blocks share a tile, and the last one to finish adds their parts in a fixed order."""

from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.library.constants import MMA_THREADS, NUM_ACC, SPLITS, WARPGROUPS


class Parts(NamedTuple):
    """Workspace: accumulators by tile, part, index and thread; and the number of blocks that have arrived per tile."""

    acc: object
    arrived: object


@cuda.jit(device=True)
def add_parts(acc, parts, tile, part, thread):
    """Write this block's accumulators to the workspace; return True in the tile's last block, then with the sum."""
    last = cuda.shared.array(1, np.int32)
    for n in range(NUM_ACC):
        parts.acc[tile, part, n, thread] = acc[n]
    cuda.threadfence()
    ptx.barrier_sync(WARPGROUPS + 1, MMA_THREADS)
    if thread == 0:
        last[0] = cuda.atomic.inc(parts.arrived, tile, SPLITS - 1) == SPLITS - 1  # resets the counter to 0
    ptx.barrier_sync(WARPGROUPS + 1, MMA_THREADS)
    if last[0] == 0:
        return False
    cuda.threadfence()
    for n in range(NUM_ACC):
        acc[n] = 0
    for other in range(SPLITS):
        for n in range(NUM_ACC):
            acc[n] += parts.acc[tile, other, n, thread]
    return True
