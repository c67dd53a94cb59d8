"""Times of events on one SM: each rule by hand, and a run of attention whose dependences the times keep."""

from dataclasses import replace

import numpy as np
import pytest
from test_roofline import made

from labkit import attention, formats, gemm
from labkit.forecast.timeline import ISSUE_CYCLES, timeline
from labkit.machine.gpus import gpu
from labkit.trace import Counters, Event

H100 = gpu("H100 SXM")
PRODUCT = 65536, 64  # FLOP of a warp, and cycles on a part of an SM
COPY = 32 * 5120, 32 * 132  # bytes, and cycles at an SM's share of the L2 cache


def trace(*warps, block=(0, 0, 0)):
    """A run of one block: for each warp its number, and the fields of its events, with the operations before each."""
    events = []
    for warp, *mine in warps:
        operations = 0.0
        for kind, fields in mine:
            operations += fields.get("operations", 0.0)
            events.append(Event(block, warp, 1, kind, **fields | {"operations": operations}))
    return replace(made(Counters(flops_by_dtype={"bfloat16 tensor": 1})), events=tuple(events))


def product(array="K"):
    return "product", {"array": array, "amount": PRODUCT[0]}


def spans(line, does, warp=None):
    return [(s.start, s.end) for s in line.spans if s.does == does and warp in (None, s.warp)]


COMMIT, FINISH = ("commit", {}), ("finish", {"amount": 0})


def test_products_follow_one_another_at_the_peak_and_the_warp_waits_for_the_last():
    line = timeline(trace((0, product(), product(), COMMIT, FINISH)))
    assert spans(line, "product") == [(0, 64), (64, 128)]
    assert spans(line, "wait") == [(2 * ISSUE_CYCLES, 128)] and line.cycles == 128 and line.idle_share == 0


def test_only_older_groups_are_waited_for():
    newest = "finish", {"amount": 1}
    line = timeline(trace((0, product("K"), COMMIT, product("V"), COMMIT, newest, FINISH)))
    assert spans(line, "wait") == [(2 * ISSUE_CYCLES, 64), (64, 128)]


@pytest.mark.parametrize(("in_turns", "order"), [(True, [0, 4, 0, 4]), (False, [0, 0, 4, 4])])
def test_tensor_cores_alternate_or_serve_who_asked_first(in_turns, order):
    late = product()[0], product()[1] | {"operations": 20.0}
    run = trace((0, product(), product(), COMMIT, FINISH), (4, late, late, COMMIT, FINISH))
    assert [span.warp for span in timeline(run, in_turns=in_turns).products()] == order


def test_parts_of_the_sm_multiply_side_by_side():
    line = timeline(trace((0, product(), COMMIT, FINISH), (1, product(), COMMIT, FINISH)))
    assert spans(line, "product") == [(0, 64), (0, 64)] and line.cycles == 64


@pytest.mark.parametrize(("work", "cycles"), [((100, 10), 100), ((100, 20), 160)])
def test_arithmetic_takes_as_long_as_the_slower_of_operations_and_powers(work, cycles):
    computed = "end", dict(zip(("operations", "powers"), work))
    line = timeline(trace((0, product(), COMMIT, FINISH, computed)))
    assert spans(line, "compute") == [(64, 64 + cycles)]


def test_warps_of_a_part_share_its_cuda_cores_and_those_of_others_have_their_own():
    work = "end", {"operations": 320.0}
    line = timeline(trace((0, work), (4, work), (5, work), (1, product())))
    assert spans(line, "compute", 0) == [(0, 640 - 32)] and spans(line, "compute", 4) == [(0, 640)]
    assert spans(line, "compute", 5) == [(0, 320)]


def barriers(*names, arrivals=1):
    return *(("init", {"at": name, "amount": arrivals}) for name in names), ("block", {})


def test_copies_come_one_after_the_other_and_a_wait_lasts_until_all_of_a_phase_are_there():
    bytes_, cycles = COPY
    expect = "arrive", {"at": "full[0]", "amount": 2 * bytes_}
    copy = "copy", {"at": "full[0]", "array": "K", "amount": bytes_}
    before_the_first, phase = ("wait", {"at": "full[1]", "amount": -1}), ("wait", {"at": "full[0]", "amount": 0})
    producer = 0, *barriers("full[0]", "full[1]"), expect, copy, copy
    consumer = 4, ("block", {}), before_the_first, phase, product(), COMMIT, FINISH
    line = timeline(trace(producer, consumer))
    latency = H100.latencies.l2
    assert spans(line, "copy") == [(latency, latency + cycles), (latency + cycles, latency + 2 * cycles)]
    (wait,) = (span for span in line.spans if span.does == "wait" and span.of == "K")
    assert (wait.start, wait.end) == (0, latency + 2 * cycles)
    assert line.idle_share == pytest.approx(wait.end / line.cycles)
    assert [(bubble.start, bubble.end, bubble.at_edge) for bubble in line.bubbles()] == [(0, wait.end, True)]


def test_a_phase_needs_all_its_arrivals_and_waits_are_for_their_own_phase():
    wait = "wait", {"at": "b[0]", "amount": 1}
    one, two = (
        ("arrive", {"at": "b[0]", "operations": 10.0}),
        ("arrive", {"at": "b[0]", "count": 2, "operations": 40.0}),
    )
    late = "arrive", {"at": "b[0]", "operations": 30.0}
    waiting = 0, *barriers("b[0]", arrivals=2), wait, product()
    line = timeline(trace(waiting, (1, ("block", {}), one, two), (2, ("block", {}), late)))
    assert [span.end for span in line.spans if span.warp == 0 and span.of == ""] == [50]


def test_a_named_barrier_opens_for_those_who_wait_when_enough_have_come():
    turn = {"at": "1", "amount": 64}
    comes = 1, ("barrier arrive", turn | {"operations": 40.0}), ("end", {"operations": 20.0})
    line = timeline(trace((0, ("barrier sync", turn), product()), comes))
    (wait,) = (span for span in line.spans if span.does == "wait")
    assert (wait.warp, wait.of, wait.start, wait.end) == (0, "turn", 0, 40)
    assert spans(line, "compute", 1) == [(0, 40), (40, 60)], "who comes goes on"


def test_rows_of_a_store_leave_by_the_engine_that_brings_copies():
    bytes_, cycles = COPY
    store = "store", {"array": "O", "amount": bytes_}
    line = timeline(trace((0, product(), store, ("commit stores", {}), ("finish stores", {"amount": 0}))))
    assert spans(line, "store") == [(ISSUE_CYCLES, ISSUE_CYCLES + cycles)] and line.cycles == ISSUE_CYCLES + cycles


def test_what_threads_store_leaves_as_their_warps_end():
    (step,) = (step for step in gemm.ladder("tensor") if step.slug == "wgmma")
    A, B, C = (np.zeros(shape, np.uint16) for shape in ((128, 64), (256, 64), (128, 256)))
    line = timeline(step.simulate(A, B, C).traces[0])
    stores = [span for span in line.spans if span.does == "store"]
    bytes_, cycles = COPY
    assert sum(span.end - span.start for span in stores) == pytest.approx(128 * 256 * 2 * cycles / bytes_)
    assert line.cycles == max(span.end for span in stores)


def test_blocks_follow_one_another_and_rests_at_their_ends_are_told_from_those_between_products():
    late = product()[0], product()[1] | {"operations": 30.0}
    mine = 0, late, COMMIT, FINISH, late, COMMIT, FINISH, ("end", {"operations": 20.0})
    first, second = trace(mine).events, trace(mine, block=(1, 0, 0)).events
    both = replace(trace(mine), events=(*second[:2], *first, *second[2:]))
    line = timeline(both)
    assert line.ends == (208, 416)
    assert [(b.start, b.end, b.at_edge) for b in line.bubbles()] == [
        *((0, 30, True), (94, 124, False), (188, 208, True)),
        *((208, 238, True), (302, 332, False), (396, 416, True)),
    ]


def test_what_has_no_timeline_is_refused():
    with pytest.raises(ValueError, match="issues no `wgmma` in the recorded blocks"):
        timeline(trace((0, ("block", {}))))
    with pytest.raises(ValueError, match="are known of one A100 SXM"):
        timeline(trace((0, product())), gpu="A100 SXM")
    with pytest.raises(ValueError, match="some of its warps wait for ever"):
        timeline(trace((0, ("init", {"at": "b[0]", "amount": 1}), ("wait", {"at": "b[0]", "amount": 0}), product())))


@pytest.fixture(scope="module")
def runs():
    problem = attention.AttentionForward(1, 1, 256, 128, keys=256)
    operands, found = problem.operands(formats.BF16), {}
    for slug, blocks in {"wgmma": 2, "overlap": 2, "persistent": 1}.items():
        step = attention.ladder("forward").step(slug)
        recorded = [(block, 0, 0) for block in range(blocks)]
        found[slug] = step.simulate(*operands, format=formats.BF16, record=recorded).traces[0]
    return problem, found


@pytest.mark.parametrize("in_turns", [True, False])
def test_steps_of_attention_multiply_all_their_flops_and_no_key_before_it_has_come(runs, in_turns):
    problem, found = runs
    for run in found.values():
        line = timeline(run, in_turns=in_turns)
        busy = sum(span.end - span.start for span in line.products())
        assert busy == pytest.approx(problem.flops / 4096)
        assert line.idle_share == pytest.approx(1 - busy / line.cycles)
        for array in ("K_tiles", "V_tiles"):
            came = next(span.end for span in line.spans if (span.does, span.of) == ("copy", array))
            assert next(span.start for span in line.products() if span.of == array) >= came


def test_products_of_the_next_step_fall_under_powers_of_two(runs):
    """In `wgmma` a warpgroup has no products in flight while it computes exp2; in `overlap` it has."""

    def under(run):
        line = timeline(run)
        powers = [span for span in line.spans if span.warp == 4 and span.powers > 2]
        mine = [span for span in line.products() if span.warp == 4]
        return sum(any(p.start < span.end and span.start < p.end for p in mine) for span in powers)

    assert under(runs[1]["wgmma"]) == 0 and under(runs[1]["overlap"]) > 0


def test_a_persistent_block_is_one_block_and_ends_sooner(runs):
    wgmma, persistent = (timeline(runs[1][slug]) for slug in ("wgmma", "persistent"))
    assert len(wgmma.ends) == 2 and len(persistent.ends) == 1
    assert persistent.cycles < wgmma.cycles
