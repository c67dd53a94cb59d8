"""Barriers of some warps: who waits for whom, what they order, and what is said where somebody is missing."""

import numpy as np
import pytest
from cells import kernel_in, line_of

import labkit
from labkit import ptx
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "ptx.barrier_arrive(1, 64)": (7, 5),
    "ptx.barrier_arrive(1 + q, 64)": (7, 5),
    "ptx.barrier_sync(1, 64)": (7, 5),
    "ptx.barrier_sync(1 + q, 64)": (7, 5),
}

PAIRS = """
@cuda.jit
def pairs(x, out):
    kept = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    for i in range(3):
        kept[t] = x[t] + i
        ptx.barrier_sync(NUMBER, THREADS)
        out[cuda.blockIdx.x, i, t] = kept[OTHER]
        ptx.barrier_sync(NUMBER, THREADS)
"""
X = np.arange(128, dtype=np.float32)


def paired(number="1 + t // 64", threads="64", other="t ^ 32", block=128):
    text = PAIRS.replace("NUMBER", number).replace("THREADS", threads).replace("OTHER", other)
    kernel = kernel_in(text, ptx=ptx)
    return kernel, labkit.simulate(kernel, 5, block, X, np.zeros((5, 3, 128), np.float32))


@pytest.mark.parametrize("number, threads", [("1 + t // 64", "64"), ("15", "128"), ("2 - t // 64", "np.int32(64)")])
def test_warps_of_one_number_hand_on_what_they_wrote(number, threads):
    _, trace = paired(number, threads)
    assert not trace.errors
    expected = X[np.arange(128) ^ 32] + np.arange(3, dtype=np.float32)[:, None]
    assert np.array_equal(trace.outputs[1], np.broadcast_to(expected, (5, 3, 128)))


def test_other_numbers_order_nothing():
    kernel, trace = paired(other="t ^ 64")
    lines = line_of(kernel, "kept[t] ="), line_of(kernel, "= kept")
    assert trace.errors
    assert {(f.kind, f.array, *sorted((f.line, f.other_line))) for f in trace.errors} == {("race", "kept", *lines)}


def test_a_warp_alone_may_wait_for_itself():
    _, trace = paired("1 + t // 32", "32", "t ^ 1")
    assert not trace.errors


PARTED = """
@cuda.jit
def parted(x, out):
    kept = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    if t < 64:
        for i in range(5):
            kept[t] = x[t] + i
            FIRST
            out[i, t] = kept[t ^ 32]
            ptx.barrier_sync(1, 64)
    else:
        for i in range(2):
            kept[t] = x[t] * i
            ptx.barrier_sync(2, 64)
            out[i, t] = kept[t ^ 32]
            SECOND
    cuda.syncthreads()
"""


def parted(first="ptx.barrier_sync(1, 64)", second="ptx.barrier_sync(2, 64)"):
    kernel = kernel_in(PARTED.replace("FIRST", first).replace("SECOND", second), ptx=ptx)
    return kernel, labkit.simulate(kernel, 3, 128, X, np.zeros((5, 128), np.float32))


def test_groups_of_warps_go_their_own_ways():
    _, trace = parted()
    assert not trace.errors
    assert np.array_equal(trace.outputs[1][4, :64], X[:64][np.arange(64) ^ 32] + 4)
    assert np.array_equal(trace.outputs[1][1, 64:], X[64 + (np.arange(64) ^ 32)])
    assert trace.counters.barriers == 3  # those of the block


def test_it_is_missed_where_it_is_left_away():
    for first, second in (("pass", "ptx.barrier_sync(2, 64)"), ("ptx.barrier_sync(1, 64)", "pass")):
        _, trace = parted(first, second)
        assert {(f.kind, f.array) for f in trace.errors} == {("race", "kept")}


def test_a_warp_that_waits_for_too_many_waits_for_ever():
    kernel, trace = parted(first="ptx.barrier_sync(1, 96)")
    (found,) = (f for f in trace.errors if f.kind == "deadlock")
    assert found.line == line_of(kernel, "barrier_sync(1, 96)")
    assert "waits at line" in found.message and "at barrier 1, to which 64 of 96 threads have come" in found.message


def test_a_barrier_of_the_block_does_not_stand_for_one_with_a_number():
    text = """
    @cuda.jit
    def apart(out):
        t = cuda.threadIdx.x
        if t < 64:
            cuda.syncthreads()
        else:
            ptx.barrier_sync(1, 128)
        out[t] = t
    """
    kernel = kernel_in(text, ptx=ptx)
    (found,) = (f for f in labkit.simulate(kernel, 2, 128, np.zeros(128)).errors if f.kind == "deadlock")
    assert (found.line, found.other_line) == (line_of(kernel, "barrier_sync"), line_of(kernel, "syncthreads"))


def test_two_groups_need_two_numbers():
    kernel, trace = paired("1", "64")
    found = trace.errors[0]
    assert (found.kind, found.line) == ("barrier", line_of(kernel, "barrier_sync"))
    assert "128 threads come to it together, and it waits for 64" in found.message


ONE_AFTER_THE_OTHER = """
@cuda.jit
def one_after_the_other(out):
    t = cuda.threadIdx.x
    if t < 64:
        ptx.barrier_sync(1, 64)
    BETWEEN
    if t >= 64:
        ptx.barrier_sync(1, 64)
    out[t] = t
"""


@pytest.mark.parametrize("between", ["pass", "ptx.barrier_sync(2 + t // 64, 64)"])
def test_two_groups_need_two_numbers_where_they_come_one_after_the_other_by_chance(between):
    kernel = kernel_in(ONE_AFTER_THE_OTHER.replace("BETWEEN", between), ptx=ptx)
    (found,) = labkit.simulate(kernel, 2, 128, np.zeros(128)).errors
    assert (found.kind, found.line) == ("barrier", line_of(kernel, "barrier_sync(1, 64)", -1))
    assert "thread 64 of block 0 comes to barrier 1" in found.message
    assert "thread 0 of block 0 waited there" in found.message


@pytest.mark.parametrize("between", ["cuda.syncthreads()", "ptx.barrier_sync(2, 128)"])
def test_two_groups_may_use_one_number_where_one_comes_behind_the_other(between):
    kernel = kernel_in(ONE_AFTER_THE_OTHER.replace("BETWEEN", between), ptx=ptx)
    assert labkit.simulate(kernel, 2, 128, np.zeros(128)).errors == ()


def test_all_who_come_agree_on_how_many_they_are():
    kernel, trace = paired("1", "128 if t < 64 else 64")
    found = trace.errors[0]
    assert (found.kind, found.line) == ("barrier", line_of(kernel, "barrier_sync"))
    assert "thread 64 of block 0 waits there for 64 threads and thread 0 of block 0 for 128" in found.message


def test_a_warp_comes_as_a_whole():
    text = """
    @cuda.jit
    def some(out):
        t = cuda.threadIdx.x
        if t % 32 < 16:
            ptx.barrier_sync(1, 64)
        out[t] = t
    """
    found, *_ = labkit.simulate(kernel_in(text, ptx=ptx), 1, 64, np.zeros(64)).errors
    assert found.kind == "mask" and "thread 16 of block 0, of the same warp, does not" in found.message


HANDED = """
@cuda.jit
def handed(x, out):
    kept = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    if t < 64:
        for i in range(4):
            EMPTY
            kept[t] = x[t] + i
            FULL
            BEHIND
    else:
        ptx.barrier_arrive(2, 128)
        for i in range(4):
            ptx.barrier_sync(1, 128)
            out[cuda.blockIdx.x, i, t - 64] = kept[(t - 64) ^ 32]
            if i < 3:
                ptx.barrier_arrive(2, 128)
"""


def handed(empty="ptx.barrier_sync(2, 128)", full="ptx.barrier_arrive(1, 128)", behind="pass"):
    """Two warps hand on what they write to two others, again and again, at a barrier each way."""
    text = HANDED.replace("EMPTY", empty).replace("FULL", full).replace("BEHIND", behind)
    kernel = kernel_in(text, ptx=ptx)
    return kernel, labkit.simulate(kernel, 3, 128, X, np.zeros((3, 4, 64), np.float32))


def test_who_arrives_goes_on_and_who_waits_sees_what_it_did():
    _, trace = handed()
    assert not trace.errors, trace.errors
    expected = X[np.arange(64) ^ 32] + np.arange(4, dtype=np.float32)[:, None]
    assert np.array_equal(trace.outputs[1], np.broadcast_to(expected, (3, 4, 64)))


@pytest.mark.parametrize("behind", ["kept[t] = 7", "kept[t ^ 32] += 1", "kept[127 - t] = kept[t ^ 32]"])
def test_who_waits_knows_nothing_of_what_comes_behind_an_arrival(behind):
    _, trace = handed(behind=behind)
    assert {(f.kind, f.array) for f in trace.errors} == {("race", "kept")}


def test_who_arrives_knows_nothing_of_those_who_wait():
    """With an arrival in place of the wait for the readers, they may still read what is written next."""
    _, trace = handed(empty="pass", full="ptx.barrier_sync(1, 128)")
    assert ("race", "kept") in {(f.kind, f.array) for f in trace.errors}


@pytest.mark.parametrize("again", ["ptx.barrier_arrive(1, 96)", "ptx.barrier_sync(1, 96)"])
def test_a_warp_comes_once_until_the_barrier_opens(again):
    text = """
    @cuda.jit
    def twice(out):
        t = cuda.threadIdx.x
        ptx.barrier_arrive(1, 96)
        AGAIN
        out[t] = t
    """
    kernel = kernel_in(text.replace("AGAIN", again), ptx=ptx)
    (found,) = (f for f in labkit.simulate(kernel, 2, 64, np.zeros(64)).errors if f.kind == "barrier")
    assert found.line == line_of(kernel, "barrier_arrive(1, 96)") + 1
    assert "thread 0 of block 0 comes to barrier 1" in found.message and "has not opened since" in found.message


TURNS = """
@cuda.jit
def turns(out):
    place = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    side = t // 64
    if t == 0:
        place[0] = 0
    cuda.syncthreads()
    if side == 1:
        ptx.barrier_arrive(1, 128)
    for i in range(3):
        ptx.barrier_sync(1 + side, 128)
        if t % 64 == 0:
            out[cuda.blockIdx.x, place[0]] = side
            place[0] += 1
        ptx.barrier_arrive(2 - side, 128)
"""


def test_two_groups_of_warps_alternate():
    """Both run the same lines; each waits until the other has come to its barrier."""
    trace = labkit.simulate(kernel_in(TURNS, ptx=ptx, int32=np.int32), 3, 128, np.full((3, 6), 9))
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[0], np.tile([0, 1], (3, 3)))
    text = TURNS.replace("        ptx.barrier_sync(1 + side, 128)\n", "")
    text = text.replace("        ptx.barrier_arrive(2 - side, 128)\n", "")
    trace = labkit.simulate(kernel_in(text, ptx=ptx, int32=np.int32), 3, 128, np.full((3, 6), 9))
    assert ("race", "place") in {(f.kind, f.array) for f in trace.errors}


def test_arrivals_alone_leave_those_who_wait_for_more_waiting():
    _, trace = handed(full="ptx.barrier_arrive(3, 128)")
    found = next(f for f in trace.errors if f.kind == "deadlock")
    assert "at barrier 1, to which 64 of 128 threads have come" in found.message


def test_arrivals_and_waits_agree_on_how_many_they_are():
    _, trace = handed(full="ptx.barrier_arrive(1, 96)")
    found = next(f for f in trace.errors if f.kind == "barrier")
    assert "waits there for 96 threads" in found.message and "for 128" in found.message


@pytest.mark.parametrize(
    "number, threads, message",
    [
        ("0", "128", "takes the numbers 1 to 15, not 0; 0 is the barrier of `cuda.syncthreads"),
        ("16", "128", "takes the numbers 1 to 15, not 16"),
        ("1", "100", "waits for whole warps, a multiple of 32 threads, not for 100"),
        ("1", "48", "waits for whole warps, a multiple of 32 threads, not for 48"),
        ("1", "0", "a multiple of 32 threads, not for 0"),
        ("1 + t % 2", "128", "all lanes of a warp give `ptx.barrier_sync` the same number"),
        ("1.5", "128", "the number of a barrier is a whole number, and this is float64"),
        ("x", "128", "the number of a barrier needs one number, and `x` is a whole array"),
    ],
)
def test_wrong_use_is_refused_in_a_sentence(number, threads, message):
    with pytest.raises(KernelError, match=message):
        paired(number, threads)


def test_a_sample_of_blocks_runs_all_the_same():
    text = PAIRS.replace("NUMBER", "1 + t // 64").replace("THREADS", "64").replace("OTHER", "t ^ 32")
    trace = labkit.simulate(kernel_in(text, ptx=ptx), 2000, 128, X, np.zeros((2000, 3, 128), np.float32), sample=8)
    assert not trace.errors and trace.counters.sample.blocks_run < 2000
