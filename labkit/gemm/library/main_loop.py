"""The steps along k of a tile: one thread fetches their stages, and warpgroups multiply them."""

from labkit import cuda, ptx
from labkit.gemm.library.constants import BK, BN, FORMAT, LEFT_MAJOR, RIGHT_MAJOR, STAGE_BYTES, STAGES, STEP, SUMS
from labkit.gemm.library.load import load_left, load_right, part_of
from labkit.parts.ring import acquire_stage, next_stage


@cuda.jit(device=True)
def fetch(left_tiles, right_tiles, full, empty, stage, parity, left, right, batch, top, first, begin, end):
    """Fetches the steps from `begin` to `end` of the tile at row `top` and column `first`; gives the ring's state."""
    for step in range(begin, end):
        acquire_stage(full, empty, stage, parity, STAGE_BYTES)
        load_left(left_tiles, stage, left, batch, top, step, full)
        load_right(right_tiles, stage, right, batch, first, step, full)
        stage, parity = next_stage(stage, parity, STAGES)
    return stage, parity


@cuda.jit(device=True)
def accumulate(sums, left_tiles, right_tiles, full, empty, stage, parity, row, begin, end, leads):
    """Multiplies the steps from `begin` to `end`, the left tile's rows from `row` on, and gives the ring's state.

    The thread that leads its warpgroup gives a stage back when the tensor cores are through with it: after the wait
    for the stage before the newest.
    """
    for n in range(SUMS):
        sums[n] = 0
    before = -1  # the stage that the tensor cores may still read
    for _ in range(begin, end):
        ptx.mbarrier_wait(full, stage, parity)
        ptx.wgmma_fence()
        for word in range(0, BK, STEP):
            a = part_of(stage, LEFT_MAJOR, row, word)
            b = part_of(stage, RIGHT_MAJOR, 0, word)
            ptx.wgmma_major(sums, 0, BN, left_tiles, a, LEFT_MAJOR, right_tiles, b, RIGHT_MAJOR, FORMAT)
        ptx.wgmma_commit()
        ptx.wgmma_wait(1)
        if leads and before >= 0:
            ptx.mbarrier_arrive(empty, before)
        before = stage
        stage, parity = next_stage(stage, parity, STAGES)
    ptx.wgmma_wait(0)
    if leads and before >= 0:
        ptx.mbarrier_arrive(empty, before)
    return stage, parity
