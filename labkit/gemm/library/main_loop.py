"""Main loop along k of a tile: one thread loads the stages, warpgroups multiply them."""

from labkit import cuda, ptx
from labkit.gemm.library.constants import BK, BN, FORMAT, LEFT_MAJOR, NUM_ACC, RIGHT_MAJOR, STAGE_BYTES, STAGES, STEP
from labkit.gemm.library.load import load_left, load_right, operand_index
from labkit.parts.ring import acquire_stage, next_stage


@cuda.jit(device=True)
def load_stages(left_tiles, right_tiles, full, empty, stage, parity, left, right, batch, m0, n0, begin, end):
    """Load steps `begin` to `end` along k of the tile at row m0 and column n0; return the next stage and its parity."""
    for step in range(begin, end):
        acquire_stage(full, empty, stage, parity, STAGE_BYTES)
        load_left(left_tiles, stage, left, batch, m0, step, full)
        load_right(right_tiles, stage, right, batch, n0, step, full)
        stage, parity = next_stage(stage, parity, STAGES)
    return stage, parity


@cuda.jit(device=True)
def accumulate(acc, left_tiles, right_tiles, full, empty, stage, parity, row, begin, end, leads):
    """Multiply steps `begin` to `end`, with the left tile's rows from `row` on; return the next stage and its parity.

    The leading thread of a warpgroup releases a stage once the tensor cores have read it: after the wait that leaves
    only the newest stage in flight.
    """
    for n in range(NUM_ACC):
        acc[n] = 0
    previous = -1  # stage that the tensor cores may still be reading
    for _ in range(begin, end):
        ptx.mbarrier_wait(full, stage, parity)
        ptx.wgmma_fence()
        for word in range(0, BK, STEP):
            a = operand_index(stage, LEFT_MAJOR, row, word)
            b = operand_index(stage, RIGHT_MAJOR, 0, word)
            ptx.wgmma_major(acc, 0, BN, left_tiles, a, LEFT_MAJOR, right_tiles, b, RIGHT_MAJOR, FORMAT)
        ptx.wgmma_commit()
        ptx.wgmma_wait(1)
        if leads and previous >= 0:
            ptx.mbarrier_arrive(empty, previous)
        previous = stage
        stage, parity = next_stage(stage, parity, STAGES)
    ptx.wgmma_wait(0)
    if leads and previous >= 0:
        ptx.mbarrier_arrive(empty, previous)
    return stage, parity
