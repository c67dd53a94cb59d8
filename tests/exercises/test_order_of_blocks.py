"""A check runs blocks in another order, too: the last block is not the last to come."""

import numpy as np
import pytest
from cells import kernel_in

from labkit.checking import Exercise, Launch
from labkit.checking.check import judge
from labkit.ladder import Expected

TOTAL = """
@cuda.jit
def total(x, sums, out):
    is_last = cuda.shared.array(1, np.int32)
    if cuda.threadIdx.x == 0:
        is_last[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(sums, 0, x[cuda.grid(1)])
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and {is_last}:
        out[0] = cuda.atomic.add(sums, 0, 0)
"""
BY_COUNT = "cuda.atomic.add(sums, 1, 1) == cuda.gridDim.x - 1"
BY_NUMBER = "cuda.blockIdx.x == cuda.gridDim.x - 1"
WAITS = """
@cuda.jit
def total(x, sums, out):
    cuda.atomic.add(sums, 0, x[cuda.grid(1)])
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(sums, 1, 1)
        if {is_last}:
            while cuda.atomic.add(sums, 1, 0) < cuda.gridDim.x:
                pass
            out[0] = cuda.atomic.add(sums, 0, 0)
"""


def make_launch(rng, blocks):
    x = rng.integers(1, 100, 64 * blocks).astype(np.int32)
    outputs = {2: Expected(x.sum(keepdims=True), np.zeros(1)), 1: Expected(np.zeros(2), np.full(2, np.inf))}
    return Launch(f"{blocks} blocks", (x, np.zeros(2, np.int32), np.zeros(1, np.int32)), outputs, (blocks,), (64,))


EXERCISE = Exercise("A total", "Add up.", 1, "total", make_launch, ((1,), (5,)), (((range(2, 9),),)))


@pytest.mark.parametrize("source", [TOTAL.format(is_last=BY_COUNT), WAITS.format(is_last=BY_NUMBER)])
def test_who_counts_arrivals_is_right_in_any_order(source):
    verdict = judge(EXERCISE, kernel_in(source, "total"), seed=0)
    assert verdict.reason == "solved", verdict.message


def test_the_block_of_the_last_number_is_not_the_last():
    verdict = judge(EXERCISE, kernel_in(TOTAL.format(is_last=BY_NUMBER), "total"), seed=0)
    assert verdict.reason == "result" and verdict.launch == "5 blocks"
    assert verdict.message.startswith("The blocks of a launch run in any order, and in a second run, in another one")
