"""Events of the recorded blocks: requests, messages and waits, each warp's in its own order."""

import numpy as np
import pytest

import labkit
from labkit import attention, cuda, formats, ptx
from labkit.simulator import events

WARP = 32


@cuda.jit
def handed_over(x, out):
    ready = cuda.shared.array(2, np.uint64)
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    if cuda.threadIdx.x == 0:
        ptx.mbarrier_init(ready, 1, 8)
    cuda.syncthreads()
    if warp == 0:
        if lane < 8:
            ptx.mbarrier_arrive(ready, 1)
        ptx.barrier_arrive(3, 64)
    else:
        y = ptx.exp2(x[lane] * x[lane])
        if lane < 8:
            y = ptx.exp2(y)
        ptx.mbarrier_wait(ready, 1, 0)
        ptx.barrier_sync(3, 64)
        out[lane] = y + y


def of(trace, warp):
    return [(e.kind, e.at, e.amount, e.count) for e in trace.events if e.warp == warp]


@pytest.fixture(scope="module")
def trace():
    x = np.ones(WARP, np.float32)
    found = labkit.simulate(handed_over, 2, 64, x, x * 0, record=((1, 0, 0),))
    assert not found.errors
    return found


def test_each_warp_has_its_own_in_their_order(trace):
    assert {event.block for event in trace.events} == {(1, 0, 0)}
    assert of(trace, 0) == [
        ("init", "ready[1]", 8, 1),
        ("block", "", 0, 32),
        ("arrive", "ready[1]", 0, 8),
        ("barrier arrive", "3", 64, 32),
        ("end", "", 0, 32),
    ]
    assert of(trace, 1) == [
        ("block", "", 0, 32),
        ("wait", "ready[1]", 0, 32),
        ("barrier sync", "3", 64, 32),
        ("end", "", 0, 32),
    ]


def test_they_tell_their_lines_and_what_was_computed_before(trace):
    wait, sync, end = (event for event in trace.events if event.warp == 1 and event.kind != "block")
    lines = [trace.source.split("\n")[event.line - trace.first_line] for event in (wait, sync)]
    assert "mbarrier_wait" in lines[0] and "barrier_sync" in lines[1]
    assert (wait.operations, wait.powers) == (1, 1.25), "a quarter of the lanes takes a second power"
    assert (end.operations, end.powers) == (2, 1.25)
    assert {(e.operations, e.powers) for e in trace.events if e.warp == 0} == {(0, 0)}


@cuda.jit
def in_rounds(out, rounds):
    told, heard = cuda.shared.array(1, np.uint64), cuda.shared.array(1, np.uint64)
    if cuda.threadIdx.x == 0:
        ptx.mbarrier_init(told, 0, 1)
        ptx.mbarrier_init(heard, 0, 1)
    cuda.syncthreads()
    for n in range(rounds):
        if cuda.threadIdx.x == 0:
            ptx.mbarrier_wait(heard, 0, (n + 1) % 2)
            ptx.mbarrier_arrive(told, 0)
        elif cuda.threadIdx.x == WARP:
            ptx.mbarrier_wait(told, 0, n % 2)
            ptx.mbarrier_arrive(heard, 0)
    if cuda.threadIdx.x == 0:
        out[0] = rounds


def test_a_wait_names_the_phase_it_is_for_and_before_the_first_there_is_none_to_wait_for():
    trace = labkit.simulate(in_rounds, 1, 64, np.zeros(1, np.float32), 3)
    waits = [(event.at, event.amount) for event in trace.events if event.kind == "wait"]
    assert [amount for at, amount in waits if at == "heard[0]"] == [-1, 0, 1]
    assert [amount for at, amount in waits if at == "told[0]"] == [0, 1, 2]


def test_copies_products_and_stores_are_as_large_as_the_tiles():
    problem = attention.AttentionForward(1, 1, 128, 64, keys=256)
    operands = problem.operands(formats.BF16)
    step = attention.ladder("forward").step("wgmma")
    (trace,) = step.simulate(*operands, format=formats.BF16).traces
    total = {}
    for event in trace.events:
        key = event.kind, event.array
        total[key] = total.get(key, 0) + event.amount
    assert {array: n for (kind, array), n in total.items() if kind == "copy"} == {
        "Q_tile": 128 * 64 * 2, "K_tiles": 256 * 64 * 2, "V_tiles": 256 * 64 * 2,
    }  # fmt: skip
    assert {array: n for (kind, array), n in total.items() if kind == "product"} == {
        "K_tiles": problem.flops // 2, "V_tiles": problem.flops // 2,
    }  # fmt: skip
    assert total["store", "Q_tile"] == 128 * 64 * 2
    asked = sum(event.amount for event in trace.events if event.kind == "arrive")
    assert asked == sum(n for (kind, _), n in total.items() if kind == "copy"), "barriers expect what copies bring"
    powers = {event.warp: event.powers for event in trace.events if event.kind == "end"}
    assert {powers[warp] for warp in range(4, 12)} == {2 * (64 + 2)}, "an exponential a score, and one to rescale"
    assert {powers[warp] for warp in range(4)} == {0}


@cuda.jit
def plain(x, out):
    i = cuda.grid(1)
    cuda.syncthreads()
    out[i] = x[i]


def test_kernels_whose_warps_all_do_the_same_keep_none():
    assert labkit.simulate(plain, 1, 64, np.ones(64, np.float32), np.zeros(64, np.float32)).events == ()


def test_too_many_are_not_kept(monkeypatch, trace):
    monkeypatch.setattr(events, "MAX_EVENTS", len(trace.events) - 1)
    x = np.ones(WARP, np.float32)
    assert labkit.simulate(handed_over, 1, 64, x, x * 0).events == ()
