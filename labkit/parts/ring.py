"""Ring of stages in shared memory: a producer fills them, consumers empty them, in the same cyclic order.

The state is a stage and a parity, which flips after each cycle. The producer and each consumer keep both in variables,
which begin at (0, 0). A stage has a barrier `full`, which the bytes of its copies complete, and a barrier `empty`, at
which each consumer arrives once it has read the stage:

    producer                                                    consumer
    acquire_stage(full, empty, stage, parity, stage_bytes)      ptx.mbarrier_wait(full, stage, parity)
    ptx.tma_load(..., full, stage)                              ...
                                                                ptx.mbarrier_arrive(empty, stage)
    stage, parity = next_stage(stage, parity, STAGES)           stage, parity = next_stage(stage, parity, STAGES)
"""

import numpy as np

from labkit import cuda, ptx


@cuda.jit(device=True)
def init_ring(full, empty, num_stages, num_consumers):
    """Initialise the barriers of all stages, by one thread; a block barrier must follow before they are used."""
    for stage in range(num_stages):
        ptx.mbarrier_init(full, stage, 1)
        ptx.mbarrier_init(empty, stage, num_consumers)
    ptx.mbarrier_init_fence()


@cuda.jit(device=True)
def acquire_stage(full, empty, stage, parity, stage_bytes):
    """Wait until the consumers have released the stage, and tell its barrier how many bytes will fill it."""
    ptx.mbarrier_wait(empty, stage, 1 - parity)
    ptx.mbarrier_expect(full, stage, stage_bytes)


@cuda.jit(device=True)
def next_stage(stage, parity, num_stages):
    """Return the state of the ring one stage later."""
    stage += 1
    if stage == num_stages:
        stage, parity = 0, 1 - parity
    return stage, parity


@cuda.jit(device=True)
def ring_state(num_used, num_stages):
    """Return the state of the ring after `num_used` stages."""
    return np.uint32(np.uint32(num_used) % num_stages), np.uint32(np.uint32(num_used) // num_stages % 2)
