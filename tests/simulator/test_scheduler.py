"""Warps that wait for one another: the right forms run, the broken ones are reported as what they are."""

import numpy as np
import pytest
from cells import line_of
from numba import float32, int32

import labkit
from labkit import cuda

WARP = 32


def values(count=64):
    return np.arange(1, count + 1, dtype=np.float32)


def run(kernel, grid=1, block=64, *arguments):
    return labkit.simulate(kernel, grid, block, *(arguments or (values(), np.zeros(64, np.float32))))


def only_error(trace, kind):
    (finding,) = trace.errors
    assert finding.kind == kind, finding.message
    return finding


def threads(finding):
    return [t.thread[0] for t in finding.threads]


# --- a producer and a consumer -------------------------------------------------------------------


@cuda.jit
def handshake(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < WARP:
        box[t] = x[t] * x[t]
        cuda.syncwarp()
        cuda.threadfence_block()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t] = box[t - WARP]


@cuda.jit
def consumer_first(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t >= WARP:
        while cuda.atomic.cas(flag, 0, 1, 1) != 1:
            pass
        y[t] = box[t - WARP]
    else:
        box[t] = x[t] * x[t]
        cuda.syncwarp()
        if t == 0:
            cuda.atomic.add(flag, 0, 1)


@cuda.jit
def ring(x, y):
    """Warp 0 fills one slot again and again; warp 1 empties it; a counter each says how far they are."""
    filled = cuda.shared.array(1, int32)
    emptied = cuda.shared.array(1, int32)
    slot = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        filled[0] = 0
        emptied[0] = 0
    cuda.syncthreads()
    if t < WARP:
        for step in range(4):
            while cuda.atomic.add(emptied, 0, 0) < step:
                pass
            slot[t] = x[t] + step
            cuda.syncwarp()
            if t == 0:
                cuda.atomic.add(filled, 0, 1)
    else:
        for step in range(4):
            while cuda.atomic.add(filled, 0, 0) <= step:
                pass
            y[t] += slot[t - WARP]
            cuda.syncwarp()
            if t == WARP:
                cuda.atomic.add(emptied, 0, 1)


@pytest.mark.parametrize("kernel", [handshake, consumer_first], ids=lambda k: k.__name__)
def test_a_consumer_warp_waits_for_its_producer(kernel):
    trace = run(kernel, 3)
    assert trace.findings == ()
    np.testing.assert_array_equal(trace.outputs[1][WARP:], values(WARP) ** 2)


def test_two_warps_pass_a_slot_to_and_fro():
    trace = run(ring)
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1][WARP:], 4 * values(WARP) + 6)


@cuda.jit
def impatient(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < WARP:
        box[t] = x[t] * x[t]
        cuda.syncwarp()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        y[t] = box[t - WARP]


def test_a_consumer_that_does_not_wait_races():
    race = only_error(run(impatient), "race")
    written, read = line_of(impatient, "box[t] = "), line_of(impatient, "y[t] = box")
    assert {race.line, race.other_line} == {written, read}
    assert sorted(threads(race)) == [0, 32]
    assert race.array == "box" and race.index == (0,)


@cuda.jit
def flag_before_the_box(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < WARP:
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
        box[t] = x[t] * x[t]
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t] = box[t - WARP]


def test_a_flag_raised_too_early_does_not_order_the_box():
    race = only_error(run(flag_before_the_box), "race")
    assert race.array == "box"
    assert {race.line, race.other_line} == {
        line_of(flag_before_the_box, "box[t] = "),
        line_of(flag_before_the_box, "y[t] = box"),
    }


@cuda.jit
def plain_flag(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < WARP:
        box[t] = x[t] * x[t]
        cuda.syncwarp()
        if t == 0:
            flag[0] = 1
    else:
        while flag[0] == 0:
            pass
        y[t] = box[t - WARP]


def test_a_flag_read_by_a_plain_load_races():
    trace = run(plain_flag)
    found = {f.array: f for f in trace.errors}
    assert {f.kind for f in trace.errors} == {"race"}
    assert {found["flag"].line, found["flag"].other_line} == {
        line_of(plain_flag, "flag[0] = 1"),
        line_of(plain_flag, "while flag[0]"),
    }


# --- barriers ------------------------------------------------------------------------------------


@cuda.jit
def forks(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < WARP:
        cuda.syncthreads()
        y[t] = s[63 - t]
    else:
        cuda.syncthreads()
        y[t] = s[63 - t] * float32(2)


def test_warps_that_fork_around_a_barrier_meet_there_and_the_two_lines_are_told():
    trace = run(forks, 2)
    np.testing.assert_array_equal(trace.outputs[1], values()[::-1] * np.repeat([1, 2], WARP))
    barrier = only_error(trace, "barrier")
    first, second = line_of(forks, "cuda.syncthreads()"), line_of(forks, "cuda.syncthreads()", 1)
    assert (barrier.line, barrier.other_line) == (first, second)
    assert threads(barrier) == [0, 32]


@cuda.jit
def forks_by_block(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.blockIdx.x % 2 == 0:
        s[t] = x[i]
        cuda.syncthreads()
        y[i] = s[63 - t]
    else:
        y[i] = x[i]


@cuda.jit
def whole_warps_work_between_barriers(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for step in range(3):
        if t < WARP:
            s[t] = x[t] + step
        cuda.syncthreads()
        if t >= WARP:
            y[t] += s[t - WARP]
        cuda.syncthreads()


@cuda.jit
def leaves_early(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t >= 40:
        return
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[39 - t]


@cuda.jit
def data_decides_the_trips(x, y):
    """Every thread of a block makes as many trips, and blocks differ."""
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i]
    k = 0
    while k <= cuda.blockIdx.x:
        cuda.syncthreads()
        value = s[(t + 1) % 64]
        cuda.syncthreads()
        s[t] = value
        k += 1
    y[i] = s[t]


@cuda.jit(device=True)
def rotated(s, t):
    cuda.syncthreads()
    value = s[(t + 1) % 64]
    cuda.syncthreads()
    s[t] = value


@cuda.jit
def barrier_in_a_device_function(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i]
    rotated(s, t)
    y[i] = s[t]


def test_blocks_may_part_ways_around_a_barrier():
    trace = run(forks_by_block, 2, 64, values(128), np.zeros(128, np.float32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], [*values(64)[::-1], *values(128)[64:]])
    assert trace.counters.barriers == 1


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (whole_warps_work_between_barriers, np.append(np.zeros(32), 3 * values(32) + 3)),
        (leaves_early, np.append(values(40)[::-1], np.zeros(24))),
        (barrier_in_a_device_function, np.roll(values(), -1)),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_barriers_that_every_thread_reaches_are_right(kernel, expected):
    trace = run(kernel)
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], expected)


def test_each_block_may_make_its_own_number_of_trips_around_a_barrier():
    x = values(192)
    trace = run(data_decides_the_trips, 3, 64, x, np.zeros(192, np.float32))
    assert trace.errors == ()
    expected = [np.roll(part, -1 - b) for b, part in enumerate(x.reshape(3, 64))]
    np.testing.assert_array_equal(trace.outputs[1], np.concatenate(expected))
    assert trace.counters.barriers == 2 * (1 + 2 + 3)


@cuda.jit
def one_branch_waits(x, y):
    t = cuda.threadIdx.x
    if t < WARP:
        cuda.syncthreads()
    y[t] = x[t]


@cuda.jit
def half_a_warp_waits(x, y):
    t = cuda.threadIdx.x
    if t < 16:
        cuda.syncthreads()
    y[t] = x[t]


@cuda.jit
def some_blocks_break_it(x, y):
    t = cuda.threadIdx.x
    if t < 16 or cuda.blockIdx.x < 2:
        cuda.syncthreads()
    y[t] = x[t]


@cuda.jit
def trips_by_warp(x, y):
    t = cuda.threadIdx.x
    for _k in range(1 + t // WARP):
        cuda.syncthreads()
    y[t] = x[t]


@cuda.jit
def trips_by_lane(x, y):
    t = cuda.threadIdx.x
    k = 0
    while k < t:
        cuda.syncthreads()
        k += 16
    y[t] = x[t]


@pytest.mark.parametrize(
    ("kernel", "who"),
    [
        (one_branch_waits, [0, 32]),
        (half_a_warp_waits, [0, 16]),
        (trips_by_warp, [32, 0]),
        (trips_by_lane, [1, 0]),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_a_barrier_that_some_threads_never_reach_is_reported_and_the_run_goes_on(kernel, who):
    trace = run(kernel)
    barrier = only_error(trace, "barrier")
    assert barrier.line == line_of(kernel, "cuda.syncthreads()")
    assert threads(barrier) == who
    assert "never reaches it" in barrier.message
    np.testing.assert_array_equal(trace.outputs[1], values())


def test_the_block_that_breaks_a_barrier_is_named():
    barrier = only_error(run(some_blocks_break_it, 4), "barrier")
    assert [t.block[0] for t in barrier.threads] == [2, 2]


# --- waiting for ever ----------------------------------------------------------------------------


@cuda.jit
def never_raised(x, y):
    flag = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < WARP:
        y[t] = x[t]
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t] = x[t]


@cuda.jit
def waits_behind_the_barrier(x, y):
    flag = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t >= WARP:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.exch(flag, 0, 1)
    y[t] = x[t]


@cuda.jit
def each_waits_for_the_other(x, y):
    flags = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    if t < 2:
        flags[t] = 0
    cuda.syncthreads()
    mine = t // WARP
    while cuda.atomic.add(flags, 1 - mine, 0) == 0:
        pass
    cuda.atomic.exch(flags, mine, 1)
    y[t] = x[t]


@pytest.mark.parametrize(
    ("kernel", "who", "other"),
    [
        (never_raised, [32], None),
        (waits_behind_the_barrier, [32, 0], "cuda.syncthreads()"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_a_wait_that_nobody_ends_is_a_deadlock(kernel, who, other):
    deadlock = only_error(run(kernel), "deadlock")
    assert deadlock.line == line_of(kernel, "while ")
    assert threads(deadlock) == who
    assert deadlock.other_line == (line_of(kernel, other, 1) if other else None)
    assert f"thread {who[0]} of block 0 waits at line {deadlock.line}" in deadlock.message
    assert "hang" in deadlock.message


def test_two_warps_that_wait_for_each_other_are_a_deadlock():
    deadlock = only_error(run(each_waits_for_the_other), "deadlock")
    assert deadlock.line == line_of(each_waits_for_the_other, "while ")


# --- blocks that wait for blocks -----------------------------------------------------------------


@cuda.jit
def second_block_first(x, y, flag):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t] = x[t]
    else:
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)


@cuda.jit
def second_block_first_other_branch(x, y, flag):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x > 0:
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t] = x[t]


@cuda.jit
def hands_over_globally(x, y, flag):
    """Block 1 fills y for block 0, which adds to it afterwards."""
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 1:
        y[t] = x[t]
        cuda.syncthreads()
        cuda.threadfence()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        if t == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        cuda.syncthreads()
        y[t] += float32(1)


@pytest.mark.parametrize("kernel", [second_block_first, second_block_first_other_branch], ids=lambda k: k.__name__)
def test_a_block_may_wait_for_a_later_one(kernel):
    trace = run(kernel, 2, 64, values(), np.zeros(64, np.float32), np.zeros(1, np.int32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], values())


def test_what_a_block_wrote_before_its_flag_is_there_behind_the_flag():
    trace = run(hands_over_globally, 2, 64, values(), np.zeros(64, np.float32), np.zeros(1, np.int32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], values() + 1)


@cuda.jit
def grid_barrier(x, y, arrived):
    """Every block counts itself in and waits for all: the hand-written barrier of a whole grid."""
    i = cuda.grid(1)
    y[i] = x[i]
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.add(arrived, 0, 1)
        while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
            pass
    cuda.syncthreads()
    neighbour = y[(i + 64) % y.size]
    x[i] = neighbour


def test_a_barrier_of_the_whole_grid_written_by_hand():
    trace = run(grid_barrier, 4, 64, values(256), np.zeros(256, np.float32), np.zeros(1, np.int32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], np.roll(values(256), -64))


@cuda.jit
def waits_without_a_barrier(x, y, flag):
    """Block 0 needs a barrier between its two lines; that block 1 passes one is no help."""
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 1:
        cuda.syncthreads()
        if t < 2:
            cuda.atomic.exch(flag, t, 1)
    else:
        s[t] = x[t]
        while cuda.atomic.add(flag, t // WARP, 0) == 0:
            pass
        y[t] = s[63 - t]


def test_a_barrier_orders_the_accesses_of_its_own_block_alone():
    trace = run(waits_without_a_barrier, 2, 64, values(), np.zeros(64, np.float32), np.zeros(2, np.int32))
    race = only_error(trace, "race")
    assert race.array == "s" and race.line == line_of(waits_without_a_barrier, "y[t] = s")
    assert trace.counters.barriers == 1


@cuda.jit
def lock(total, mutex):
    """One thread a block adds under a lock."""
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(mutex, 0, 0)


def test_a_lock_lets_blocks_alternate():
    trace = run(lock, 5, 64, np.zeros(1), np.zeros(1, np.int32))
    assert trace.outputs[0][0] == 5
    assert trace.errors == ()


@cuda.jit
def counted_with_a_stride(x, out):
    i = cuda.grid(1)
    while i < x.size:
        if x[i] > 0:
            cuda.atomic.add(out, 0, 1)
        i += cuda.gridsize(1)


@cuda.jit
def first_found(x, found, out):
    i = cuda.grid(1)
    while i < x.size:
        if x[i] > 0 and cuda.atomic.cas(found, 0, 0, 1) == 0:
            out[0] = i
        i += cuda.gridsize(1)


@cuda.jit
def never_moved_on(x, out):
    i = cuda.grid(1)
    while i < x.size:
        if cuda.atomic.add(out, 0, 1) < 0:
            i += 1


def test_a_loop_that_gets_on_is_no_deadlock_though_it_holds_an_atomic():
    x = np.zeros(40_000, np.int32)
    x[-1] = 1
    trace = labkit.simulate(counted_with_a_stride, 1, 64, x, np.zeros(1, np.int32))
    assert trace.errors == () and trace.outputs[1][0] == 1
    trace = labkit.simulate(first_found, 1, 64, x, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert trace.errors == () and trace.outputs[2][0] == x.size - 1


def test_a_loop_of_atomics_that_never_ends_is_stopped(monkeypatch):
    from labkit.simulator import limits
    from labkit.simulator.errors import KernelError

    monkeypatch.setattr(limits, "MAX_CHUNK_WORK", 1000)
    with pytest.raises(KernelError, match="make sure that each ends in every thread"):
        labkit.simulate(never_moved_on, 1, 64, np.zeros(10, np.int32), np.zeros(1, np.int32))


@cuda.jit
def far_too_many(x):
    for _ in range(2**62):
        x[cuda.grid(1)] += 1


@cuda.jit
def far_too_many_backwards(x):
    i = cuda.grid(1)
    for k in range(i * 10**12, 0, -1):
        x[i] += k


@cuda.jit
def left_early(x):
    i = cuda.grid(1)
    for k in range(2**62):
        if k > i:
            break
        x[i] += 1


@pytest.mark.parametrize(
    ("kernel", "trips"), [(far_too_many, "4,611,686,018,427,387,904"), (far_too_many_backwards, "63,000,000,000,000")]
)
def test_a_loop_of_too_many_iterations_is_told_before_the_first(kernel, trips, monkeypatch):
    from labkit.simulator.errors import KernelError
    from labkit.simulator.scheduler import Chunk

    monkeypatch.setattr(Chunk, "tick", lambda *_: pytest.fail("an iteration ran"))
    with pytest.raises(KernelError, match=f"this loop would take {trips} iterations"):
        labkit.simulate(kernel, 1, 64, np.zeros(64, np.int32))


def test_a_loop_that_is_left_early_may_have_any_range():
    assert labkit.simulate(left_early, 1, 64, np.zeros(64, np.int32)).outputs[0].tolist() == list(range(1, 65))
