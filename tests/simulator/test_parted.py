"""Lanes of one warp that wait for one another: GPUs since Volta run them on their own."""

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit.simulator.errors import LaunchError

BY_ALL = """
@cuda.jit(device=True)
def take(mutex):
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass


@cuda.jit
def kernel(total, mutex, out):
    take(mutex)
    cuda.threadfence()
    total[0] += 1
    mine = total[0]
    cuda.threadfence()
    cuda.atomic.exch(mutex, 0, 0)
    {then}
"""
SUM = """
    for away in (16, 8, 4, 2, 1):
        mine += cuda.shfl_xor_sync(0xFFFFFFFF, mine, away)
    out[cuda.grid(1)] = mine
"""
MEET = """
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    s[t] = mine
    cuda.{barrier}()
    out[cuda.grid(1)] = s[t // 32 * 32 + (t + 1) % 32] - mine
"""


def run(source, grid, block):
    kernel = kernel_in(source, int32=np.int32)
    return labkit.simulate(kernel, grid, block, *np.zeros((2, 1), np.int32), np.zeros(grid * block, np.int32))


@pytest.mark.parametrize("grid, block", [(1, 32), (1, 1), (2, 64), (3, 40)])
def test_all_lanes_take_a_lock(grid, block):
    trace = run(BY_ALL.format(then="out[cuda.grid(1)] = mine"), grid, block)
    assert trace.errors == () and trace.outputs[0][0] == grid * block
    assert sorted(trace.outputs[2]) == [*range(1, grid * block + 1)]
    advice = [f for f in trace.findings if f.kind == "lane-wait"]
    assert len(advice) == (block > 1)
    for finding in advice:
        assert finding.line == 3 and "GPUs before Volta" in finding.message
        assert finding.remedy.startswith("Let each lane")


def test_lanes_on_their_own_meet_in_collectives():
    trace = run(BY_ALL.format(then=SUM.strip()), 1, 32)
    assert trace.errors == () and set(trace.outputs[2]) == {32 * 33 // 2}


@pytest.mark.parametrize("barrier", ["syncwarp", "syncthreads"])
def test_lanes_on_their_own_meet_at_barriers(barrier):
    then = MEET.strip().format(barrier=barrier)
    trace = run(BY_ALL.format(then=then), 2, 64)
    assert trace.errors == () and 0 not in trace.outputs[2]
    assert {f.array for f in run(BY_ALL.format(then=then.replace(f"cuda.{barrier}()", "pass")), 2, 64).errors} == {"s"}


def test_a_lane_may_wait_for_what_another_does_behind_the_wait():
    source = """
    @cuda.jit
    def kernel(total, flag, out):
        t = cuda.threadIdx.x
        if t == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        if t == 31:
            {tell}
        out[cuda.grid(1)] = t
    """
    trace = run(source.format(tell="cuda.atomic.exch(flag, 0, 1)"), 1, 32)
    assert trace.errors == () and [*trace.outputs[2]] == [*range(32)]
    (deadlock,) = run(source.format(tell="pass"), 1, 32).errors
    assert deadlock.kind == "deadlock"


def test_a_lock_that_is_kept_still_hangs():
    source = BY_ALL.format(then="pass").replace("cuda.atomic.exch(mutex, 0, 0)", "cuda.syncwarp()")
    for grid, block in [(1, 32), (2, 64)]:
        (deadlock,) = run(source, grid, block).errors
        assert deadlock.kind == "deadlock" and 3 in (deadlock.line, deadlock.other_line)


def test_orders_of_lanes_on_their_own_are_not_explored():
    kernel = kernel_in(BY_ALL.format(then="out[cuda.grid(1)] = mine"))
    with pytest.raises(LaunchError, match="let one lane of each warp wait"):
        labkit.explore(kernel, 1, 32, *np.zeros((2, 1), np.int32), np.zeros(32, np.int32))


def test_lanes_that_take_two_locks_in_opposite_orders_hang():
    source = """
    @cuda.jit
    def kernel(total, locks, out):
        mine = cuda.threadIdx.x % 2
        while cuda.atomic.cas(locks, mine, 0, 1) != 0:
            pass
        while cuda.atomic.cas(locks, 1 - mine, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(locks, 1 - mine, 0)
        cuda.atomic.exch(locks, mine, 0)
    """
    arguments = np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(1)
    (deadlock,) = labkit.simulate(kernel_in(source), 1, 32, *arguments).errors
    assert deadlock.kind == "deadlock"
    trace = labkit.simulate(kernel_in(source.replace("threadIdx.x % 2", "threadIdx.x * 0")), 1, 32, *arguments)
    assert trace.errors == () and trace.outputs[0][0] == 32
