"""A ring of stages in shared memory: a producer fills them, consumers empty them, and both walk round it.

Its state is the stage and a parity, which changes after each round; whoever walks keeps both in variables, and begins
at (0, 0). A stage has a barrier `full`, which the bytes of its copies complete, and one `empty`, at which each consumer
arrives once it has read the stage:

    producer                                                    consumer
    claim(full, empty, stage, parity, stage_bytes)              ptx.mbarrier_wait(full, stage, parity)
    ptx.tma_load(..., full, stage)                              ...
                                                                ptx.mbarrier_arrive(empty, stage)
    stage, parity = next_stage(stage, parity, STAGES)           stage, parity = next_stage(stage, parity, STAGES)
"""

import numpy as np

from labkit import cuda, ptx


@cuda.jit(device=True)
def prepare(full, empty, stages, consumers):
    """Makes the barriers of so many stages, by one thread; the block meets before it uses them."""
    for stage in range(stages):
        ptx.mbarrier_init(full, stage, 1)
        ptx.mbarrier_init(empty, stage, consumers)
    ptx.mbarrier_init_fence()


@cuda.jit(device=True)
def claim(full, empty, stage, parity, stage_bytes):
    """Waits until the consumers have given the stage back, and says how many bytes will fill it."""
    ptx.mbarrier_wait(empty, stage, 1 - parity)
    ptx.mbarrier_expect(full, stage, stage_bytes)


@cuda.jit(device=True)
def next_stage(stage, parity, stages):
    """The state of the ring one stage further on."""
    stage += 1
    if stage == stages:
        stage, parity = 0, 1 - parity
    return stage, parity


@cuda.jit(device=True)
def place_in_ring(used, stages):
    """The state of the ring when so many stages have been used, for who counts them."""
    return np.uint32(np.uint32(used) % stages), np.uint32(np.uint32(used) // stages % 2)
