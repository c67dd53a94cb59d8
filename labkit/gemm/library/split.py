"""Parts along k of a tile, each by a block: the last one adds all of them, in their order, so that runs agree."""

from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.library.constants import MULTIPLYING, SPLITS, SUMS, WARPGROUPS


class Parts(NamedTuple):
    """What blocks leave to the last one: sums by tile, part, number and thread; and how many have been there."""

    sums: object
    arrived: object


@cuda.jit(device=True)
def add_parts(sums, parts, tile, part, thread):
    """Leaves this block's sums to the last block of the tile; whether that is this one, which then has all sums."""
    last = cuda.shared.array(1, np.int32)
    for n in range(SUMS):
        parts.sums[tile, part, n, thread] = sums[n]
    cuda.threadfence()
    ptx.barrier_sync(WARPGROUPS + 1, MULTIPLYING)
    if thread == 0:
        last[0] = cuda.atomic.inc(parts.arrived, tile, SPLITS - 1) == SPLITS - 1  # and it is 0 again
    ptx.barrier_sync(WARPGROUPS + 1, MULTIPLYING)
    if last[0] == 0:
        return False
    cuda.threadfence()
    for n in range(SUMS):
        sums[n] = 0
    for other in range(SPLITS):
        for n in range(SUMS):
            sums[n] += parts.sums[tile, other, n, thread]
    return True
