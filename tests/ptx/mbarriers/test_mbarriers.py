"""Barriers in shared memory: a ring between a producer and a consumer, and what breaks it."""

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import uint64

import labkit
from labkit import ptx
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "ptx.mbarrier_init(barriers, 1, 32)": (8, 0),
    "ptx.mbarrier_arrive(barriers, 1)": (8, 0),
    "ptx.mbarrier_init_fence()": (9, 0),
    "ptx.mbarrier_expect(barriers, 1, 4096)": (9, 0),
    "ptx.mbarrier_wait(barriers, 1, 0)": (9, 0),
    "ptx.mbarrier_arrive_at(barriers, 1, 0)": (9, 0),
}

WARP = 32
STAGES = 4
ROUNDS = 11  # more than twice round the ring

RING = """
@cuda.jit
def ring(x, out):
    box = cuda.shared.array((STAGES, 32), float32)
    full = cuda.shared.array(STAGES, uint64)
    empty = cuda.shared.array(STAGES, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 32)
            ptx.mbarrier_init(empty, stage, 32)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if t < 32:
        for i in range(ROUNDS):
            stage = i % STAGES
            ptx.mbarrier_wait(empty, stage, (i // STAGES + 1) & 1)
            box[stage, t] = x[i, t]
            ptx.mbarrier_arrive(full, stage)
    else:
        for i in range(ROUNDS):
            stage = i % STAGES
            ptx.mbarrier_wait(full, stage, (i // STAGES) & 1)
            out[cuda.blockIdx.x, i, t - 32] = box[stage, 63 - t]
            ptx.mbarrier_arrive(empty, stage)
"""


def kernel(text):
    return kernel_in(text, ptx=ptx, uint64=uint64, STAGES=STAGES, ROUNDS=ROUNDS)


def run(text, blocks=3, block=2 * WARP):
    x = np.arange(ROUNDS * WARP, dtype=np.float32).reshape(ROUNDS, WARP)
    made = kernel(text)
    return made, labkit.simulate(made, blocks, block, x, np.zeros((blocks, ROUNDS, WARP), np.float32))


def test_a_ring_hands_on_every_box():
    _, trace = run(RING)
    assert not trace.errors
    x, out = trace.outputs
    assert np.array_equal(out, np.broadcast_to(x[:, ::-1], out.shape))


def changed(before, after):
    assert RING.count(before) == 1
    return RING.replace(before, after)


def kinds(trace):
    return {f.kind for f in trace.errors}


@pytest.mark.parametrize(
    "before, after, kind",
    [
        ("            ptx.mbarrier_wait(empty, stage, (i // STAGES + 1) & 1)\n", "", "deadlock"),
        ("            ptx.mbarrier_wait(full, stage, (i // STAGES) & 1)\n", "", "uninitialised"),
        ("            ptx.mbarrier_arrive(full, stage)\n", "", "deadlock"),
        ("            ptx.mbarrier_arrive(empty, stage)\n", "", "deadlock"),
        ("(i // STAGES + 1) & 1", "(i // STAGES) & 1", "deadlock"),
        (
            "mbarrier_wait(full, stage, (i // STAGES) & 1)",
            "mbarrier_wait(full, stage, (i // STAGES + 1) & 1)",
            "uninitialised",
        ),
        ("mbarrier_arrive(full, stage)", "mbarrier_arrive(full, 0)", "deadlock"),
        ("mbarrier_wait(full, stage, ", "mbarrier_wait(full, (i + 1) % STAGES, ", "deadlock"),
        ("mbarrier_init(empty, stage, 32)", "mbarrier_init(empty, stage, 33)", "deadlock"),
        ("mbarrier_init(empty, stage, 32)", "mbarrier_init(empty, stage, 31)", "mbarrier"),
        ("    cuda.syncthreads()\n", "", "race"),
        ("    if t == 0:\n", "    if t < 2:\n", "mbarrier"),
        ("            ptx.mbarrier_init(empty, stage, 32)\n", "", "mbarrier"),
    ],
)
def test_a_broken_ring_is_found_out(before, after, kind):
    _, trace = run(changed(before, after))
    assert kind in kinds(trace), trace.errors


def test_a_deadlock_says_who_waits_for_what():
    made, trace = run(changed("            ptx.mbarrier_arrive(full, stage)\n", ""))
    (finding,) = trace.errors
    assert (finding.line, finding.other_line) == (line_of(made, "wait(empty"), line_of(made, "wait(full"))
    assert "for parity 0 of empty[0], which has had 0 of 32 arrivals after 0 complete phases" in finding.message
    assert "thread 32 of block 0 waits" in finding.message
    assert "for parity 0 of full[0], which has had 0 of 32 arrivals after 0 complete phases" in finding.message


def test_a_wait_for_the_phase_before_the_first_passes_at_once():
    _, trace = run(
        changed(
            "for i in range(ROUNDS):\n            stage = i % STAGES\n            ptx.mbarrier_wait(full",
            "ptx.mbarrier_wait(empty, 0, 1)\n        for i in range(ROUNDS):\n"
            "            stage = i % STAGES\n            ptx.mbarrier_wait(full",
        )
    )
    assert not trace.errors


@pytest.mark.parametrize("line", ["full[1] = 0", "box[0, t] = full[t % 4]"])
def test_a_barrier_is_no_number(line):
    with pytest.raises(KernelError, match="holds barriers"):
        run(changed("    if t < 32:\n", f"    {line}\n    if t < 32:\n"))


def test_barriers_are_shared_uint64():
    with pytest.raises(KernelError, match="shared array of uint64"):
        run(changed("full = cuda.shared.array(STAGES, uint64)", "full = cuda.shared.array(STAGES, float32)"))


RELAY = """
@cuda.jit
def relay(out):
    turns = cuda.shared.array(WARPS, uint64)
    told = cuda.shared.array(1, float32)
    t, warp = cuda.threadIdx.x, cuda.threadIdx.x // 32
    if t == 0:
        for w in range(WARPS):
            ptx.mbarrier_init(turns, w, 1)
        ptx.mbarrier_init_fence()
        told[0] = 0
    cuda.syncthreads()
    for i in range(ROUNDS):
        if warp > 0 or i > 0:
            ptx.mbarrier_wait(turns, (warp + WARPS - 1) % WARPS, (i + (warp == 0)) & 1)
        if t % 32 == 0:
            told[0] += warp + 1
            out[cuda.blockIdx.x, i, warp] = told[0]
            ptx.mbarrier_arrive(turns, warp)
"""


def test_warps_that_wait_for_one_another_in_the_same_line_go_on_one_by_one():
    made = kernel_in(RELAY, ptx=ptx, uint64=uint64, WARPS=4, ROUNDS=ROUNDS)
    trace = labkit.simulate(made, 3, 4 * WARP, np.zeros((3, ROUNDS, 4), np.float32))
    assert not trace.errors
    told = np.cumsum(np.tile(np.arange(1, 5), ROUNDS)).reshape(ROUNDS, 4)
    assert np.array_equal(trace.outputs[0], np.broadcast_to(told, (3, ROUNDS, 4)))


# A warp hands a tile on to another, which gives it back.
HAND_OVER = """
@cuda.jit
def hand_over(x, out):
    box = cuda.shared.array(32, float32)
    full = cuda.shared.array(1, uint64)
    empty = cuda.shared.array(1, uint64)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    if warp == 0 and lane == 0:
        ptx.mbarrier_init(full, 0, COUNTS[0])
        ptx.mbarrier_init(empty, 0, COUNTS[1])
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if warp == 0:
        {bring}
        {announce}
        ptx.mbarrier_wait(empty, 0, 0)
        box[lane] = 0
    else:
        ptx.mbarrier_wait(full, 0, 0)
        out[cuda.blockIdx.x, lane] = box[31 - lane]
        {give_back}
"""
STORE = ("box[lane] = x[lane]",)
COPY = "ptx.cp_async(box, lane, x, lane, 4, 4)", "ptx.cp_async_commit()", "ptx.cp_async_wait(0)"
BY_ALL = ("ptx.mbarrier_arrive({}, 0)",)
BY_ONE = "if lane == 3:", "    ptx.mbarrier_arrive({}, 0)"
MET = ("cuda.syncwarp()",)
VOTED = ("cuda.any_sync(0xFFFFFFFF, lane == 0)",)


def handed_over(bring, announce, give_back):
    """The errors of the kernel with these lines."""
    lines = {"bring": bring, "announce": announce, "give_back": give_back}
    counts = tuple(1 if "if lane == 3:" in way else WARP for way in (announce, give_back))
    names = {"announce": "full", "give_back": "empty"}
    filled = {what: "\n        ".join(text).format(names.get(what)) for what, text in lines.items()}
    made = kernel_in(HAND_OVER.format(**filled), ptx=ptx, uint64=uint64, COUNTS=counts)
    x, out = np.arange(WARP, dtype=np.float32), np.zeros((2, WARP), np.float32)
    return made, labkit.simulate(made, 2, (WARP, 2), x, out).errors


@pytest.mark.parametrize("bring", [STORE, COPY], ids=["store", "copy"])
@pytest.mark.parametrize("announce", [BY_ALL, MET + BY_ONE, VOTED + BY_ONE], ids=["by all", "met", "voted"])
@pytest.mark.parametrize("give_back", [BY_ALL, MET + BY_ONE, VOTED + BY_ONE], ids=["by all", "met", "voted"])
def test_an_arrival_of_one_lane_speaks_for_its_warp_once_that_has_met(bring, announce, give_back):
    assert handed_over(bring, announce, give_back)[1] == ()


@pytest.mark.parametrize("bring", [STORE, COPY], ids=["store", "copy"])
@pytest.mark.parametrize("announce", [BY_ONE, BY_ONE + MET], ids=["no syncwarp", "syncwarp too late"])
def test_an_arrival_of_one_lane_does_not_tell_what_the_others_have_written(bring, announce):
    made, (race,) = handed_over(bring, announce, BY_ALL)
    assert race.kind == "race" and race.count == 2 * 31
    assert (race.line, race.other_line) == (line_of(made, "= box[31"), line_of(made, bring[0]))
    after = "after the wait for the copy of" if bring == COPY else "after"
    assert race.remedy.startswith(f"Put `cuda.syncwarp()` {after} line {race.other_line}, ")


@pytest.mark.parametrize("give_back", [BY_ONE, BY_ONE + MET], ids=["no syncwarp", "syncwarp too late"])
def test_an_arrival_of_one_lane_does_not_tell_that_the_others_have_read(give_back):
    made, (race,) = handed_over(STORE, BY_ALL, give_back)
    assert race.kind == "race" and race.count == 2 * 31
    assert (race.line, race.other_line) == (line_of(made, "box[lane] = 0"), line_of(made, "= box[31"))
    assert race.remedy.startswith(f"Put `cuda.syncwarp()` after line {race.other_line}, ")


def test_a_long_way_behind_an_arrival_of_one_lane_is_still_no_order():
    """The warp that arrived has done much since, and has met."""
    late = "for _ in range(12):", "    cuda.syncwarp()"
    _, (race,) = handed_over(STORE, BY_ONE + late, BY_ALL)
    assert race.kind == "race"


WAIT_OF_ONE = """
@cuda.jit
def kernel(x, out):
    box = cuda.shared.array(32, float32)
    full = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(full, 0, 32)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if t < 32:
        box[t] = x[t]
        ptx.mbarrier_arrive(full, 0)
    else:
        if {waits}:
            ptx.mbarrier_wait(full, 0, 0)
        {meet}
        if {reads}:
            out[t - 32] = box[63 - t]
"""
ONE, MET = "t == 32", "cuda.syncwarp()"


@pytest.mark.parametrize(
    ("waits", "meet", "reads", "is_ordered"),
    [
        (ONE, "pass", "True", False),
        (ONE, "pass", ONE, True),
        (ONE, MET, "True", True),
        ("True", "pass", "True", True),
        ("t < 48", "pass", "True", False),
        ("t < 48", "pass", "t < 48", True),
        ("t < 48", "cuda.syncwarp(0x0000FFFF if t < 48 else 0xFFFF0000)", "True", False),
        ("t < 48", "cuda.syncwarp(0x00FF00FF if t % 16 < 8 else 0xFF00FF00)", "True", True),
        ("t % 2 == 0", "cuda.syncwarp(0x0000FFFF if t < 48 else 0xFFFF0000)", "True", True),
    ],
)
def test_a_wait_speaks_for_the_lane_that_waits(waits, meet, reads, is_ordered):
    x = np.arange(WARP, dtype=np.float32)
    made = kernel(WAIT_OF_ONE.format(waits=waits, meet=meet, reads=reads))
    races = labkit.simulate(made, 1, 64, x, np.zeros(WARP)).errors
    assert bool(races) == (not is_ordered)
    for race in races:
        assert race.array == "box" and race.remedy.startswith("Put `cuda.syncwarp()` after the wait, before line")
        assert "Only another lane of its warp has waited for that" in race.message


WAIT_FOR_A_LANE = """
@cuda.jit
def kernel(x, out):
    box = cuda.shared.array(32, float32)
    turn = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(turn, 0, 32)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    for i in range(4):
        box[t] = x[t] + i
        ptx.mbarrier_arrive(turn, 0)
        if t == 31:
            ptx.mbarrier_wait(turn, 0, i & 1)
        {meet}
        out[t] += box[31 - t]
        cuda.syncwarp()
"""


@pytest.mark.parametrize("meet", ["pass", MET])
def test_lanes_of_one_warp_meet_behind_a_wait_of_one(meet):
    x = np.arange(WARP, dtype=np.float32)
    trace = labkit.simulate(kernel(WAIT_FOR_A_LANE.format(meet=meet)), 1, 32, x, np.zeros(WARP))
    assert trace.outputs[1][0] == 4 * 31 + 6
    assert {f.kind for f in trace.errors} == ({"race"} if meet == "pass" else set())
