"""A launch in many orders of its warps: what a race really does, and that nothing else depends on the order."""

from collections import Counter
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from cells import line_of
from numba import float32, int32

import labkit
from labkit import cuda
from labkit.simulator.errors import LaunchError
from labkit.simulator.explorer import interleaving

WARP = 32
THREADS = 256


def zeros(count, dtype=np.int32):
    return np.zeros(count, dtype)


def results(exploration, argument=-1):
    """The first element of an argument after each outcome, and how many orders gave it."""
    return {outcome.outputs[argument].ravel()[0].item(): outcome.orders for outcome in exploration.outcomes}


# --- sums in shared memory -----------------------------------------------------------------------


@cuda.jit
def halved(x, out):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = THREADS // 2
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    if t == 0:
        out[0] = s[0]


@cuda.jit
def halved_in_a_hurry(x, out):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = THREADS // 2
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        k //= 2
    if t == 0:
        out[0] = s[0]


@cuda.jit
def mirrored(x, out):
    """Two races, of which the first does no harm where all values are equal."""
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    s[63 - t] = s[t]
    cuda.syncthreads()
    if t == 32:
        s[0] = 9
    if t == 0:
        out[0] = s[0]


def test_of_two_races_that_which_makes_the_difference_explains_it():
    found = labkit.explore(mirrored, 1, 64, np.ones(64, np.float32), zeros(1, np.float32))
    assert set(results(found)) == {1, 9}
    harmless, harmful = [f for f in found.findings if f.kind == "race"]
    assert harmless.line == line_of(mirrored, "s[63 - t]")
    assert found.explained_by is harmful
    assert {harmful.line, harmful.other_line} == {found.difference.line, found.difference.other_line}


@pytest.fixture(scope="module")
def hurried():
    return labkit.explore(halved_in_a_hurry, 1, THREADS, np.ones(THREADS, np.float32), zeros(1, np.float32))


def test_a_sum_without_barriers_depends_on_the_order(hurried):
    assert hurried.complete and hurried.orders == 12
    assert set(results(hurried)) == {128, 160, 192, 224, 256}
    assert sum(results(hurried).values()) == 12
    counts = [outcome.orders for outcome in hurried.outcomes]
    assert counts == sorted(counts, reverse=True)


def test_a_right_sum_is_the_same_in_every_order():
    ones = np.ones(THREADS, np.float32), zeros(1, np.float32)
    found = labkit.explore(halved, 1, THREADS, *ones)
    assert found.complete and results(found) == {256: 1}
    assert not any(step.unordered for step in found.outcomes[0].schedule), "the barriers order all accesses"
    assert found.difference is None and found.explained_by is None and found.findings == ()
    assert repr(found) == "<Exploration of halved: one outcome in every order>"
    random = Random(7)
    shuffled = [random.sample(range(8), 8) for _ in range(20)]
    assert set(results(labkit.explore(halved, 1, THREADS, *ones, orders=shuffled))) == {256}


def test_the_difference_is_where_the_orders_part_and_the_race_found_there_explains_it(hurried):
    difference = hurried.difference
    line = line_of(halved_in_a_hurry, "s[t] +=")
    assert (difference.array, difference.line, difference.other_line) == ("s", line, line)
    assert difference.index[0] // WARP == difference.other_warp[1] != difference.warp[1]
    for outcome, position, value in zip(hurried.outcomes, difference.steps, difference.values):
        step = outcome.schedule[position]
        assert ((step.block, step.warp), step.line, step.kind) == (difference.warp, line, "load")
        assert difference.other_warp[1] in {outcome.schedule[k].warp for k in step.races}
        assert dict(zip(step.elements, step.values))[difference.index[0]] == value
    assert difference.values[0] != difference.values[1]
    assert hurried.explained_by.kind == "race" and hurried.explained_by in hurried.findings


def test_a_schedule_tells_what_each_warp_did(hurried):
    outcome = next(o for o in hurried.outcomes if o.outputs[1][0] == 128)
    barrier = next(i for i, step in enumerate(outcome.schedule) if step.kind == "barrier")
    before = outcome.schedule[:barrier]
    assert sorted(step.warp for step in before) == list(range(8))
    first = before[0]
    assert (first.kind, first.array, first.line) == ("store", "s", line_of(halved_in_a_hurry, "s[t] = x[t]"))
    assert first.elements == tuple(range(first.warp * WARP, first.warp * WARP + WARP))
    assert first.values == (1.0,) * WARP and not first.races
    waits = line_of(halved_in_a_hurry, "cuda.syncthreads()")
    assert [outcome.schedule[barrier - 1].stands.count(waits), outcome.schedule[barrier].stands.count(waits)] == [8, 0]
    assert outcome.schedule[-1].stands == (0,) * 8
    assert [step.values for step in outcome.schedule if step.array == "out"] == [(128.0,)]


# --- every order that makes a difference, and no other ---------------------------------------------


@cuda.jit
def lost_updates(out):
    if cuda.threadIdx.x % WARP == 0:
        out[0] += cuda.threadIdx.x // WARP + 1


@cuda.jit
def each_looks_at_the_next(out, box):
    """Three warps write one element each, and read their neighbour's."""
    w = cuda.threadIdx.x // WARP
    if cuda.threadIdx.x % WARP == 0:
        box[w] = w + 1
        out[w] = box[(w + 1) % 3]


def interleavings(counts):
    """All ways to merge as many turns of each warp."""
    if not any(counts):
        yield []
    for warp, count in enumerate(counts):
        if count:
            for rest in interleavings([c - (w == warp) for w, c in enumerate(counts)]):
                yield [warp, *rest]


@pytest.mark.parametrize(
    ("kernel", "turns", "arguments"),
    [(lost_updates, 2, [zeros(1)]), (each_looks_at_the_next, 3, [zeros(3), zeros(3)])],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_exactly_the_outcomes_of_all_interleavings_are_found(kernel, turns, arguments):
    every = list(interleavings([turns] * 3))
    every = every if len(every) < 100 else Random(1).sample(every, 300)
    expected = labkit.explore(kernel, 1, 3 * WARP, *arguments, orders=every)
    found = labkit.explore(kernel, 1, 3 * WARP, *arguments, orders=300, seed=3)
    assert found.complete and not expected.complete
    assert found.orders == expected.orders

    def outcomes(exploration):
        return Counter({tuple(o.outputs[0].tolist()): o.orders for o in exploration.outcomes})

    assert outcomes(found) == outcomes(expected)


def test_three_warps_that_add_without_atomics_lose_updates():
    found = labkit.explore(lost_updates, 1, 3 * WARP, zeros(1))
    assert set(results(found)) == {1, 2, 3, 4, 5, 6}
    blocks = labkit.explore(add_one, 3, WARP, zeros(1))
    assert set(results(blocks)) == {1, 2, 3}
    assert blocks.explained_by.line == line_of(add_one, "out[0] += 1")


@cuda.jit
def add_one(out):
    if cuda.threadIdx.x == 0:
        out[0] += 1


@cuda.jit
def last_word(out):
    if cuda.threadIdx.x % WARP == 0:
        out[0] = cuda.threadIdx.x // WARP + 1


def test_where_nothing_is_read_the_last_write_makes_the_difference():
    found = labkit.explore(last_word, 1, 2 * WARP, zeros(1))
    assert results(found) == {1: 1, 2: 1} and found.complete
    line = line_of(last_word, "out[0] = ")
    assert (found.difference.line, found.difference.other_line) == (line, line)
    assert found.difference.warp != found.difference.other_warp
    assert set(found.difference.values) == {1, 2}


# --- atomics -------------------------------------------------------------------------------------


@cuda.jit
def counted(x, out):
    i = cuda.grid(1)
    cuda.atomic.add(out, x[i], 1)
    cuda.atomic.max(out, 3, x[i])


@cuda.jit
def summed(x, out):
    cuda.atomic.add(out, 0, x[cuda.grid(1)])


@cuda.jit
def numbered(out, tickets):
    """Each warp draws a number, which depends on which warps came before."""
    if cuda.threadIdx.x % WARP == 0:
        out[cuda.threadIdx.x // WARP] = cuda.atomic.add(tickets, 0, 1)


def test_integer_atomics_make_one_order_of_all():
    x = np.arange(128) % 3
    found = labkit.explore(counted, 2, 64, x, zeros(4))
    assert found.complete and found.orders == 1
    np.testing.assert_array_equal(found.outcomes[0].outputs[1], [43, 43, 42, 2])


def test_sums_of_floats_round_differently_in_each_order():
    x = np.random.default_rng(0).normal(size=96).astype(np.float32)
    found = labkit.explore(summed, 1, 96, x, zeros(1, np.float32))
    assert found.orders == 6 and len(found.outcomes) > 1
    np.testing.assert_allclose(list(results(found)), x.sum(), rtol=1e-5)
    assert found.difference.array == "out" and found.explained_by is None, "rounding is no race"


def test_what_an_atomic_returns_depends_on_the_order():
    found = labkit.explore(numbered, 1, 96, zeros(3), zeros(1))
    drawn = sorted(tuple(o.outputs[0].tolist()) for o in found.outcomes)
    assert drawn == [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    assert found.difference.array == "tickets"
    draws = [step for step in found.outcomes[0].schedule if step.kind == "atomic"]
    assert all(step.unordered and not step.races for step in draws), "two atomics are no race, whatever comes of it"


# --- warps that wait -----------------------------------------------------------------------------


@cuda.jit
def handshake(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < WARP:
        box[t] = x[t]
        cuda.threadfence_block()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t - WARP] = box[t - WARP]


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
        box[t] = x[t]
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t - WARP] = box[t - WARP]


@cuda.jit
def patient(x, y, flag):
    """Block 0 waits for block 1, in a loop that counts: no warp may starve."""
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x == 0:
            tries = 0
            while cuda.atomic.add(flag, 0, 0) == 0 and tries < 1_000_000:
                tries += 1
            y[0] = x[0]
        else:
            x[0] = 7
            cuda.atomic.exch(flag, 0, 1)


@cuda.jit
def locked(total, mutex):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
            pass
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(mutex, 0, 0)


@pytest.fixture
def box():
    return np.arange(1, 65, dtype=np.float32), zeros(64, np.float32)


def test_a_producer_and_a_consumer_agree_in_every_order(box):
    found = labkit.explore(handshake, 1, 64, *box)
    assert found.complete and len(found.outcomes) == 1
    np.testing.assert_array_equal(found.outcomes[0].outputs[1][:WARP], box[0][:WARP])
    assert found.orders == 2, "the consumer looks too early, or it does not"


@cuda.jit
def relay(out, flag):
    """Warp 1 waits for warp 0, which has more to do afterwards."""
    t = cuda.threadIdx.x
    if t == 0:
        cuda.atomic.exch(flag, 0, 1)
        out[0] = 1
    if t == WARP:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        out[0] = 2


def test_a_warp_that_waits_goes_on_as_soon_as_it_may():
    order = [1, 0, 1, 1, 0]  # looks | raises the flag | looks again, writes | writes
    (outcome,) = labkit.explore(relay, 1, 64, zeros(1), zeros(1), orders=[order]).outcomes
    assert [step.warp for step in outcome.schedule] == order and outcome.outputs[0][0] == 1
    with pytest.raises(LaunchError, match="turn 1 of the order .* goes to warp 1 of block 0, which cannot run then"):
        labkit.explore(relay, 1, 64, zeros(1), zeros(1), orders=[[1, 1]])


def test_a_flag_raised_too_early_lets_the_consumer_read_an_empty_box(box):
    found = labkit.explore(flag_before_the_box, 1, 64, *box)
    assert sorted(results(found)) == [0, 1]
    assert found.difference.array == "box" and found.explained_by.array == "box"


def test_a_warp_that_counts_while_it_waits_starves_nobody():
    found = labkit.explore(patient, 2, WARP, zeros(1), zeros(1), zeros(1), orders=20)
    assert set(results(found, 1)) == {7}


def test_a_lock_lets_blocks_alternate_in_every_order():
    found = labkit.explore(locked, 3, WARP, zeros(1), zeros(1))
    assert found.complete and results(found, 0) == {3: found.orders}
    assert found.orders >= 6


@cuda.jit
def through_the_grid(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    cuda.cg.this_grid().sync()
    x[i] = y[(i + 64) % y.size]


def test_the_barrier_of_the_grid_orders_all_blocks():
    x = np.arange(128, dtype=np.float32)
    found = labkit.explore(through_the_grid, 2, 64, x, x * 0)
    assert found.complete and found.orders == 1
    np.testing.assert_array_equal(found.outcomes[0].outputs[0], np.roll(x, 64))
    schedule = found.outcomes[0].schedule
    assert [step.kind for step in schedule if step.warp < 0] == ["grid barrier"]
    assert not any(step.unordered for step in schedule)


# --- waiting for ever ----------------------------------------------------------------------------


@cuda.jit
def two_locks(out, locks):
    """Each warp takes its own lock and then the other's."""
    mine = cuda.threadIdx.x // WARP
    if cuda.threadIdx.x % WARP == 0:
        while cuda.atomic.cas(locks, mine, 0, 1) != 0:
            pass
        while cuda.atomic.cas(locks, 1 - mine, 0, 1) != 0:
            pass
        out[0] += 1
        cuda.atomic.exch(locks, 1 - mine, 0)
        cuda.atomic.exch(locks, mine, 0)


def test_a_deadlock_of_some_orders_is_an_outcome():
    found = labkit.explore(two_locks, 1, 64, zeros(1), zeros(2))
    assert found.complete
    fine, stuck = found.outcomes
    assert fine.deadlock is None and fine.outputs[0][0] == 2 and stuck.outputs[0][0] == 0
    assert stuck.deadlock.line == line_of(two_locks, "while ", 1)
    assert "waits at line" in stuck.deadlock.message
    assert [step.line for step in stuck.schedule[:4]] == [line_of(two_locks, "while ")] * 2 + [stuck.deadlock.line] * 2
    assert len(stuck.schedule) < 8, "rounds in which nothing moves are left out"
    assert stuck.schedule[-1].stands == (stuck.deadlock.line,) * 2
    again = labkit.explore(two_locks, 1, 64, zeros(1), zeros(2), orders=[stuck.schedule])
    assert again.outcomes[0].deadlock == stuck.deadlock


@cuda.jit
def nobody_comes(out, flag):
    if cuda.threadIdx.x % WARP == 0:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        out[0] = 1


def test_many_warps_that_wait_forever_hang_and_say_so():
    found = labkit.explore(nobody_comes, 2, 1024, zeros(1), zeros(1), orders=1)
    assert found.outcomes[0].deadlock.line == line_of(nobody_comes, "while ")
    assert len(found.outcomes[0].schedule) == 64, "each looks once; that it looks again and again is left out"


@cuda.jit
def one_half_waits(x, y):
    t = cuda.threadIdx.x
    if t < WARP:
        cuda.syncthreads()
    y[t] = x[t]


def test_a_barrier_that_some_warps_miss_is_told_and_the_run_goes_on(box):
    found = labkit.explore(one_half_waits, 1, 64, *box)
    (outcome,) = found.outcomes
    assert [f.kind for f in outcome.errors] == ["barrier"]
    np.testing.assert_array_equal(outcome.outputs[1], box[0])


# --- replays and choices -------------------------------------------------------------------------


@cuda.jit
def chased(x, out):
    """Each block rotates its part; the first and last threads race, and blocks race in `out`."""
    s = cuda.shared.array((2, WARP), float32)
    t = cuda.threadIdx.x
    s[t // WARP, t % WARP] = x[cuda.grid(1)]
    cuda.syncthreads()
    n = (t + 1) % 64
    s[t // WARP, t % WARP] = s[n // WARP, n % WARP]
    if t == 0:
        out[0] += s[0, 0] + s[1, 0]


def test_a_schedule_replayed_gives_the_same_again():
    x = np.arange(128, dtype=np.float32)
    found = labkit.explore(chased, 2, 64, x, zeros(1, np.float32), orders=60)
    assert len(found.outcomes) > 3
    again = labkit.explore(chased, 2, 64, x, zeros(1, np.float32), orders=[o.schedule for o in found.outcomes])
    replayed = {o.outputs[1].tobytes(): o for o in again.outcomes}
    assert len(replayed) == len(found.outcomes)
    for outcome in found.outcomes:
        assert replayed[outcome.outputs[1].tobytes()].schedule == outcome.schedule


def test_blocks_have_shared_memory_of_their_own():
    x = np.arange(128, dtype=np.float32)
    found = labkit.explore(chased, 2, 64, x, zeros(1, np.float32), orders=1)
    stores = [step for step in found.outcomes[0].schedule if (step.array, step.kind) == ("s", "store")]
    assert {step.block for step in stores} == {(0, 0, 0), (1, 0, 0)}
    assert {max(step.elements) for step in stores} == {31, 63}
    first = {(step.block[0], step.warp): step.values[0] for step in reversed(stores)}
    assert all(value == 64 * block + 32 * warp for (block, warp), value in first.items())


def test_an_order_may_name_warps_or_blocks_and_warps():
    def only(order):
        return list(results(labkit.explore(last_word, 1, 64, zeros(1), orders=[order])))

    assert only([0, 1]) == only([]) == [2]
    assert only([1, 0]) == only([(0, 1), ((0, 0, 0), 0)]) == [1]


def test_the_arguments_stay_as_they_are_and_are_kept():
    out = zeros(1)
    found = labkit.explore(last_word, 1, 64, out)
    assert out[0] == 0 and found.inputs[0][0] == 0 and found.inputs[0] is not out


def test_equal_seeds_give_equal_orders():
    x = np.arange(128, dtype=np.float32)
    runs = [labkit.explore(chased, 2, 64, x, zeros(1, np.float32), orders=30, seed=seed) for seed in (1, 1, 2)]
    schedules = [[outcome.schedule for outcome in run.outcomes] for run in runs]
    assert schedules[0] == schedules[1] != schedules[2]


@cuda.jit
def reads_what_another_wrote(x, out):
    """The index comes from an element that another warp writes."""
    place = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        place[0] = 0
    cuda.syncthreads()
    if t == WARP:
        place[0] = 99
    if t == 0:
        out[0] = x[place[0]]


def test_an_error_that_only_some_orders_show_stands_with_their_outcome():
    found = labkit.explore(reads_what_another_wrote, 1, 64, np.ones(4), zeros(1, float))
    kinds = {outcome.outputs[1][0]: {f.kind for f in outcome.errors} for outcome in found.outcomes}
    assert kinds == {1.0: {"race"}, 0.0: {"race", "bounds"}}


@cuda.jit
def deaf(x, out):
    """Lanes of the upper half get nothing defined, and nothing depends on it."""
    t = cuda.threadIdx.x
    if t < 16:
        value = cuda.shfl_down_sync(0xFFFF, x[t], 8)
        if t < 8:
            out[t] = x[t] + value


def test_an_undefined_value_that_nothing_depends_on_is_no_error_of_an_order():
    found = labkit.explore(deaf, 1, 32, np.arange(32), zeros(8, np.int64))
    assert found.outcomes[0].errors == found.findings == ()
    np.testing.assert_array_equal(found.outcomes[0].outputs[1], 2 * np.arange(8) + 8)


@cuda.jit(device=True)
def bumped(array, i):
    array[i] += 1
    return array[i]


@cuda.jit
def through_a_function(out, x):
    part = out[1:]
    if cuda.threadIdx.x % WARP == 0:
        x[cuda.threadIdx.x // WARP] = bumped(part, 0)


def test_accesses_in_device_functions_and_through_views_are_turns_too():
    found = labkit.explore(through_a_function, 1, 64, zeros(2), zeros(2))
    assert {tuple(o.outputs[0].tolist()) for o in found.outcomes} == {(0, 1), (0, 2)}
    assert {step.elements for step in found.outcomes[0].schedule if step.array == "out"} == {(1,)}


# --- bounded work --------------------------------------------------------------------------------


@cuda.jit
def all_threads_everywhere(out):
    for k in range(out.size):
        out[k] += 1


def test_the_work_is_bounded(monkeypatch):
    found = labkit.explore(all_threads_everywhere, 2, 256, zeros(8), orders=10)
    assert found.orders <= 10 and not found.complete
    monkeypatch.setattr("labkit.simulator.explorer.schedules.MAX_ALL_TURNS", 600)
    found = labkit.explore(all_threads_everywhere, 2, 256, zeros(8))
    assert found.orders <= 3 and not found.complete


@cuda.jit
def endless(out):
    while cuda.atomic.add(out, 0, 1) >= 0:
        pass


def test_a_launch_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(interleaving, "MAX_TURNS", 50)
    monkeypatch.setattr("labkit.simulator.explorer.schedules.simulate", lambda *a, **k: SimpleNamespace(findings=()))
    with pytest.raises(LaunchError, match="stopped after 50 accesses in one order"):
        labkit.explore(endless, 1, 64, zeros(1))


@pytest.mark.parametrize(
    ("launch", "orders", "message"),
    [
        ((1, 64), 0, "orders is 0, so nothing would run"),
        ((65, 32), 5, "65 warps, and orders of at most 64"),
        ((1, 64), [[0, 5]], "no warp 5 in block 0: the launch has 1 blocks of 2 warps"),
        ((1, 64), [[(3, 0)]], "no warp 0 in block 3"),
        ((1, 64), [[0, 0]], r"turn 1 of the order \(counted from 0\) goes to warp 0 of block 0, which cannot run then"),
    ],
)
def test_what_cannot_be_explored_is_refused_in_a_sentence(launch, orders, message):
    with pytest.raises(LaunchError, match=message):
        labkit.explore(last_word, *launch, zeros(1), orders=orders)
