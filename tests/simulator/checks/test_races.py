"""Order of accesses: barriers of a warp, a part of it, a block and the grid, atomics and fences."""

import numpy as np
import pytest
from cells import kernel_in, line_of, text_of
from numba import float32, int32, uint32

import labkit
from labkit import cuda
from labkit.simulator import launch
from labkit.simulator.errors import LaunchError

FULL = 0xFFFFFFFF


def numbers(count):
    return np.arange(1, count + 1, dtype=np.float32)


def errors(kernel, grid, block, *arguments):
    return labkit.simulate(kernel, grid, block, *arguments).errors


def without(kernel, line):
    """The kernel with one line taken out; raises ValueError if it has no such line."""
    lines = text_of(kernel).splitlines(keepends=True)
    del lines[next(i for i, text in enumerate(lines) if text.strip() == line)]
    return kernel_in("".join(lines), kernel.py_func.__name__, FULL=FULL, uint32=uint32)


# --- barriers of a warp, and of a part of it -------------------------------------------------------


@cuda.jit
def half_and_half_again(x, out):
    """A sum over a warp, in which fewer lanes take part with every step."""
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    if t < 16:
        s[t] = s[t] + s[t + 16]
        cuda.syncwarp(0xFFFF)
    if t < 8:
        s[t] = s[t] + s[t + 8]
        cuda.syncwarp(0xFF)
    if t < 4:
        s[t] = s[t] + s[t + 4]
        cuda.syncwarp(0xF)
    if t < 2:
        s[t] = s[t] + s[t + 2]
        cuda.syncwarp(0x3)
    if t == 0:
        out[0] = s[0] + s[1]


@cuda.jit
def tiles_exchange(x, out):
    """Each four lanes exchange through shared memory, behind a barrier of their own."""
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile = uint32(0xF) << uint32(t // 4 * 4)
    s[t] = x[t]
    cuda.syncwarp(tile)
    out[t] = s[t ^ 3]
    cuda.syncwarp(tile)
    s[t] = float32(0)


@cuda.jit
def across_tiles(x, out):
    """The barrier holds tiles of four lanes together, and the exchange goes beyond them."""
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile = uint32(0xF) << uint32(t // 4 * 4)
    s[t] = x[t]
    cuda.syncwarp(tile)
    out[t] = s[t ^ 4]


@cuda.jit
def passed_on(x, out):
    """Lanes 0 and 1 meet, then 1 and 2: lane 2 knows what lane 0 wrote."""
    s = cuda.shared.array(2, float32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = x[0]
    if t < 2:
        cuda.syncwarp(0b011)
    if t == 1 or t == 2:
        cuda.syncwarp(0b110)
    if t == 2:
        out[0] = s[0]


@cuda.jit
def the_wrong_pair(x, out):
    """Lanes 1 and 2 meet before lanes 0 and 1 do: lane 2 knows nothing of lane 0."""
    s = cuda.shared.array(2, float32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = x[0]
    if t == 1 or t == 2:
        cuda.syncwarp(0b110)
    if t < 2:
        cuda.syncwarp(0b011)
    if t == 2:
        out[0] = s[0]


@cuda.jit
def read_then_overwritten(x, out):
    """Lanes 0 and 1 read an element, and lane 2 writes it after it met lane 1 alone."""
    s = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = x[0]
    cuda.syncwarp()
    if t < 2:
        out[t] = s[0]
    if t == 1 or t == 2:
        cuda.syncwarp(0b110)
    if t == 2:
        s[0] = float32(7)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (half_and_half_again, [528]),
        (tiles_exchange, numbers(32).reshape(8, 4)[:, ::-1].ravel()),
        (passed_on, [1]),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_a_barrier_of_some_lanes_orders_what_they_do(kernel, expected):
    trace = labkit.simulate(kernel, 2, 32, numbers(32), np.zeros(32, np.float32))
    assert [f for f in trace.errors if f.array != "out"] == []
    np.testing.assert_array_equal(trace.outputs[1][: len(expected)], expected)


@pytest.mark.parametrize(
    ("kernel", "lanes"),
    [(across_tiles, {0, 4}), (the_wrong_pair, {0, 2}), (read_then_overwritten, {0, 2})],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_a_barrier_of_some_lanes_orders_no_others(kernel, lanes):
    (race,) = errors(kernel, 1, 32, numbers(32), np.zeros(32, np.float32))
    assert race.kind == "race" and race.array == "s"
    assert {t.thread[0] for t in race.threads} == lanes


@pytest.mark.parametrize(
    "line", ["cuda.syncwarp()", "cuda.syncwarp(0xFFFF)", "cuda.syncwarp(0xFF)", "cuda.syncwarp(0x3)"]
)
def test_any_barrier_taken_out_of_a_warp_reduction_is_a_race(line):
    found = errors(without(half_and_half_again, line), 1, 32, numbers(32), np.zeros(1, np.float32))
    assert {f.kind for f in found} == {"race"}


@cuda.jit
def shuffle_for_a_barrier(x, out):
    """A shuffle brings the lanes together, but promises nothing about memory (CUDA C++ Programming Guide)."""
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.shfl_sync(FULL, x[t], 0)
    out[t] = s[31 - t]


def test_a_shuffle_orders_no_memory():
    (race,) = errors(shuffle_for_a_barrier, 1, 32, numbers(32), np.zeros(32, np.float32))
    assert race.kind == "race"


# --- the last block to finish ----------------------------------------------------------------------


@cuda.jit
def last_block_sums(x, partial, count, total):
    """Each block adds up its part; the last to finish adds up what the blocks left."""
    s = cuda.shared.array(1, float32)
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if t == 0:
        s[0] = float32(0)
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(s, 0, x[i])
    cuda.syncthreads()
    if t == 0:
        partial[cuda.blockIdx.x] = s[0]
        cuda.threadfence()
        ticket = cuda.atomic.inc(count, 0, cuda.gridDim.x - 1)
        is_last[0] = ticket == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0]:
        for b in range(t, cuda.gridDim.x, cuda.blockDim.x):
            cuda.atomic.add(total, 0, partial[b])


@cuda.jit
def everyone_writes_and_fences(x, partial, count, total):
    """All threads of a block write, each warp makes its own writes visible, then one thread tells."""
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    partial[i] = x[i]
    cuda.threadfence()
    cuda.syncthreads()
    if t == 0:
        is_last[0] = cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0]:
        for k in range(t, partial.size, cuda.blockDim.x):
            cuda.atomic.add(total, 0, partial[k])


def arguments_of(kernel, blocks, threads):
    size = blocks * threads
    partial = np.zeros(size if kernel is everyone_writes_and_fences else blocks, np.float32)
    return np.ones(size, np.float32), partial, np.zeros(1, np.uint32), np.zeros(1, np.float32)


@pytest.mark.parametrize("kernel", [last_block_sums, everyone_writes_and_fences], ids=lambda k: k.__name__)
@pytest.mark.parametrize(("blocks", "threads"), [(3, 32), (5, 64), (300, 128), (2000, 32)])
def test_the_last_block_may_read_what_the_others_wrote(kernel, blocks, threads):
    trace = labkit.simulate(kernel, blocks, threads, *arguments_of(kernel, blocks, threads))
    assert trace.errors == ()
    assert trace.outputs[3][0] == blocks * threads


def test_the_last_block_is_right_however_the_grid_is_cut_into_chunks(monkeypatch):
    monkeypatch.setattr(launch, "CHUNK_LANES", 2048)
    trace = labkit.simulate(last_block_sums, 500, 64, *arguments_of(last_block_sums, 500, 64))
    assert trace.errors == ()
    assert trace.outputs[3][0] == 32_000


@pytest.mark.parametrize("kernel", [last_block_sums, everyone_writes_and_fences], ids=lambda k: k.__name__)
@pytest.mark.parametrize("blocks", [4, 1200])
def test_a_fence_left_out_before_the_counter_is_a_race_with_its_own_remedy(kernel, blocks):
    broken = without(kernel, "cuda.threadfence()")
    (race,) = errors(broken, blocks, 64, *arguments_of(kernel, blocks, 64))
    assert (race.kind, race.array) == ("race", "partial")
    assert "cuda.threadfence()" in race.remedy and f"after line {race.other_line}" in race.remedy


@pytest.mark.parametrize("blocks", [4, 1200])
def test_a_fence_after_the_counter_comes_too_late(blocks):
    text = text_of(without(last_block_sums, "cuda.threadfence()"))
    at = "        is_last[0] ="
    late = kernel_in(text.replace(at, f"        cuda.threadfence()\n{at}"), "last_block_sums", int32=int32)
    (race,) = errors(late, blocks, 64, *arguments_of(last_block_sums, blocks, 64))
    assert (race.kind, race.array) == ("race", "partial") and "cuda.threadfence()" in race.remedy


@pytest.mark.parametrize("blocks", [4, 1200])
def test_a_block_that_does_not_ask_whether_it_is_the_last_races(blocks):
    text = text_of(last_block_sums).replace("ticket == cuda.gridDim.x - 1", "1")
    broken = kernel_in(text, "last_block_sums", int32=int32)
    found = errors(broken, blocks, 32, *arguments_of(last_block_sums, blocks, 32))
    assert {(f.kind, f.array) for f in found} == {("race", "partial")}
    assert "cuda.threadfence()" not in found[0].remedy


RESET = "\n    if is_last[0] and t == 0:\n        count[0] = 0\n"


@pytest.mark.parametrize(("blocks", "threads"), [(3, 32), (5, 64), (300, 128), (2000, 32)])
def test_the_last_block_may_reset_the_counter_by_a_plain_store(blocks, threads):
    """The last block knows from the counter that all others have counted, as in NVIDIA's threadFenceReduction."""
    resets = kernel_in(text_of(everyone_writes_and_fences) + RESET, "everyone_writes_and_fences", int32=int32)
    trace = labkit.simulate(resets, blocks, threads, *arguments_of(everyone_writes_and_fences, blocks, threads))
    assert trace.errors == ()
    assert trace.outputs[2][0] == 0 and trace.outputs[3][0] == blocks * threads


def test_a_device_function_may_ask_for_the_block():
    resets = kernel_in(
        "@cuda.jit(device=True)\ndef ticket(count):\n    return cuda.atomic.inc(count, 0, 1000)\n\n\n"
        + text_of(everyone_writes_and_fences).replace("cuda.atomic.add(count, 0, 1)", "ticket(count)")
        + RESET,
        "everyone_writes_and_fences",
        int32=int32,
    )
    assert "= ticket(count)" in text_of(resets)
    assert errors(resets, 5, 64, *arguments_of(everyone_writes_and_fences, 5, 64)) == ()


@cuda.jit
def calls_itself(count, out):
    if waits_for_itself(count):
        count[0] = 0


@cuda.jit(device=True)
def waits_for_itself(count):
    return waits_for_itself(count)


def test_a_function_that_calls_itself_is_refused_as_ever():
    with pytest.raises(labkit.KernelError, match="itself"):
        labkit.simulate(calls_itself, 1, 1, np.zeros(1, np.int32), np.zeros(1, np.int32))


@cuda.jit
def the_last_warp_resets(count, out):
    counted = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        counted[0] = 0
    cuda.syncthreads()
    if t % 32 == 0 and cuda.atomic.add(counted, 0, 1) == cuda.blockDim.x // 32 - 1:
        out[cuda.blockIdx.x] = counted[0]
        counted[0] = 0


def test_the_last_warp_of_a_block_may_too():
    assert errors(the_last_warp_resets, 3, 256, np.zeros(1, np.int32), np.zeros(3, np.int32)) == ()


@cuda.jit
def the_first_resets(count, out):
    if cuda.threadIdx.x == 0 and cuda.atomic.add(count, 0, 1) == 0:
        count[0] = 0


@cuda.jit
def the_last_index_reads(count, out):
    """The counter's value is used as an index to write to, so it does not say that the others have counted."""
    if cuda.threadIdx.x == 0:
        place = cuda.atomic.add(count, 0, 1)
        if place < 60:
            out[place] = cuda.blockIdx.x
        if cuda.blockIdx.x == cuda.gridDim.x - 1:
            out[63] = count[0]


@cuda.jit
def one_still_looks(count, out):
    """Block 0 may look again after the last one has stored."""
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x == 0:
            while cuda.atomic.add(count, 0, 0) < cuda.gridDim.x - 1:
                pass
        elif cuda.atomic.add(count, 0, 1) == cuda.gridDim.x - 2:
            count[0] = 10_000


@cuda.jit
def told_by_another_flag(count, out):
    """The flag says that block 0 is through with the counter, and without a fence it may say so too early."""
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x == 0:
            cuda.atomic.add(count, 0, 1)
            cuda.atomic.add(out, 0, 1)
        elif cuda.blockIdx.x == 1:
            while cuda.atomic.add(out, 0, 0) == 0:
                pass
            count[0] = 0


@pytest.mark.parametrize(
    "kernel",
    [the_first_resets, the_last_index_reads, one_still_looks, told_by_another_flag],
    ids=lambda k: k.__name__,
)
@pytest.mark.parametrize("blocks", [3, 600])
def test_who_does_not_know_by_the_counter_that_all_have_counted_races(kernel, blocks):
    found = errors(kernel, blocks, 32, np.zeros(1, np.int32), np.zeros(64, np.int32))
    assert {(race.kind, race.array) for race in found} == {("race", "count")}
    assert line_of(kernel, "count[0]") in {race.line for race in found}


# --- locks and flags between blocks ----------------------------------------------------------------


UNDER_A_LOCK = """
@cuda.jit
def kernel(total, mutex):
    if cuda.threadIdx.x == 0:
        while {take} != 0:
            pass
        {behind}
        total[0] += 1
        {before}
        {give_back}
"""
BY_A_SWAP = "cuda.atomic.cas(mutex, 0, 0, 1)"
BY_AN_EXCHANGE = "cuda.atomic.exch(mutex, 0, 1)"
FENCE = "cuda.threadfence()"


def under_a_lock(take=BY_A_SWAP, behind=FENCE, before=FENCE, give_back="cuda.atomic.exch(mutex, 0, 0)"):
    kernel = kernel_in(UNDER_A_LOCK.format(take=take, behind=behind, before=before, give_back=give_back))
    trace = labkit.simulate(kernel, 6, 64, np.zeros(1), np.zeros(1, np.int32))
    assert trace.outputs[0][0] == 6
    return trace.errors


@pytest.mark.parametrize("take", [BY_A_SWAP, BY_AN_EXCHANGE])
def test_a_lock_is_taken_before_a_fence_and_given_back_behind_one(take):
    assert under_a_lock(take) == ()
    for behind, before in [("pass", FENCE), (FENCE, "pass"), ("pass", "pass"), ("cuda.threadfence_block()", FENCE)]:
        found = under_a_lock(take, behind, before)
        assert {(f.kind, f.array) for f in found} == {("race", "total")}
        assert all("Put `cuda.threadfence()`" in f.remedy for f in found)
        assert all("after line 4, where the lock is taken" in f.remedy for f in found)
        assert all(("before the atomic" in f.remedy) == (before == "pass") for f in found)


def test_a_lock_is_given_back_by_an_atomic():
    (race,) = under_a_lock(give_back="mutex[0] = 0")
    assert race.array == "mutex" and race.remedy.startswith("Release the lock by `cuda.atomic.exch(mutex, 0, 0)`")


BLOCK_UNDER_A_LOCK = """
@cuda.jit(device=True)
def take(mutex):
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass


@cuda.jit
def kernel(x, mutex):
    t = cuda.threadIdx.x
    if t == 0:
        take(mutex)
        {first}
    cuda.syncthreads()
    {every}
    x[t] += 1
    cuda.threadfence()
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.exch(mutex, 0, 0)
"""


@pytest.mark.parametrize("first, every", [(FENCE, "pass"), ("pass", FENCE), ("pass", "pass")])
def test_a_fence_behind_a_lock_speaks_for_the_block(first, every):
    kernel = kernel_in(BLOCK_UNDER_A_LOCK.format(first=first, every=every))
    trace = labkit.simulate(kernel, 4, 64, np.zeros(64, np.int32), np.zeros(1, np.int32))
    assert bool(trace.errors) == (first == every == "pass")
    assert (trace.outputs[0] == 4).all()


IN_TURN = """
@cuda.jit
def kernel(total, mutex):
    for i in range(32):
        if cuda.threadIdx.x % 32 == i:
            while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            total[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(mutex, 0, 0)
"""


@pytest.mark.parametrize("grid, block", [(1, 32), (3, 32), (2, 96)])
def test_lanes_that_take_a_lock_in_turn_do_not_race(grid, block):
    trace = labkit.simulate(kernel_in(IN_TURN), grid, block, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert trace.errors == () and trace.outputs[0][0] == grid * block
    unlocked = IN_TURN.replace("while cuda.atomic.cas(mutex, 0, 0, 1) != 0:", "if cuda.atomic.add(mutex, 0, 1) < 0:")
    unlocked = unlocked.replace("            cuda.atomic.exch(mutex, 0, 0)\n", "")
    assert labkit.simulate(kernel_in(unlocked), grid, block, np.zeros(1, np.int32), np.zeros(1, np.int32)).errors


@cuda.jit
def one_lane_tells(x, flag, out):
    s = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    if t < 32:
        s[t] = x[t]
        cuda.syncwarp()
        if t == 0:
            cuda.atomic.exch(flag, cuda.blockIdx.x, 1)
    else:
        while cuda.atomic.add(flag, cuda.blockIdx.x, 0) == 0:
            pass
        out[t - 32] = s[63 - t]


def test_a_lane_that_tells_another_warp_speaks_for_its_own_only_once_they_have_met():
    arguments = np.arange(32, dtype=np.float32), np.zeros(3, np.int32), np.zeros(32, np.float32)
    assert errors(one_lane_tells, 3, 64, *arguments) == ()
    (race,) = errors(without(one_lane_tells, "cuda.syncwarp()"), 3, 64, *arguments)
    assert race.array == "s" and race.remedy.startswith("Put `cuda.syncwarp()` after line")


@cuda.jit
def block_scope_is_too_narrow(x, y, flag, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        y[t] = x[t]
        cuda.syncthreads()
        if t == 0:
            cuda.threadfence_block()
            cuda.atomic.exch(flag, 0, 1)
    else:
        if t == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        cuda.syncthreads()
        out[t] = y[t]


def test_a_fence_of_the_block_makes_nothing_visible_to_another_block():
    arguments = numbers(64), np.zeros(64, np.float32), np.zeros(1, np.int32), np.zeros(64, np.float32)
    (race,) = errors(block_scope_is_too_narrow, 2, 64, *arguments)
    assert race.array == "y" and "cuda.threadfence()" in race.remedy
    text = text_of(block_scope_is_too_narrow).replace("threadfence_block", "threadfence")
    assert errors(kernel_in(text, "block_scope_is_too_narrow"), 2, 64, *arguments) == ()


BEFORE = {
    "a read": "out[b * 4 + t // 32] = x[0]",
    "a read of shared memory": "out[b * 4 + t // 32] = s[0]",
    "an atomic": "cuda.atomic.add(x, 0, 1)",
    "a shared atomic": "cuda.atomic.add(s, 0, 1)",
}


def one_of_many_is_not_awaited(before, who, missing):
    """Warps, or blocks, access an element and signal, but one does not signal; the last waits, and writes."""
    number = {"warp": "t // 32", "block": "b"}[who]
    return kernel_in(f"""
@cuda.jit
def kernel(x, flag, out):
    s = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    if t == 0:
        s[0] = 0
    cuda.syncthreads()
    if t % 32 == 0:
        if {number} < 3:
            {BEFORE[before]}
            if {number} != {missing}:
                cuda.threadfence()
                cuda.atomic.add(flag, 0, 1)
        else:
            while cuda.atomic.add(flag, 0, 0) != {3 - (missing < 3)}:
                pass
            cuda.threadfence()
            {"s" if " shared" in before else "x"}[0] = 7
""")


@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize(
    ("before", "who"), [*((b, "warp") for b in BEFORE), ("a read", "block"), ("an atomic", "block")]
)
def test_a_thread_that_is_not_awaited_races(before, who, missing):
    grid, block = (1, 128) if who == "warp" else (4, 32)
    kernel = one_of_many_is_not_awaited(before, who, missing)
    found = errors(kernel, grid, block, np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(16, np.int32))
    if missing == 3:
        assert found == ()
    else:
        (race,) = found
        place = getattr(race.threads[1], who if who == "block" else "thread")[0]
        assert race.kind == "race" and place == (missing if who == "block" else 32 * missing)


@cuda.jit
def adds_without_a_look(x, flag, out):
    """A thread that does not use an atomic's result cannot know which came first."""
    mine = cuda.atomic.add(flag, 1, 1)
    if cuda.blockIdx.x == 0:
        x[0] = 1
        cuda.threadfence()
        cuda.atomic.add(flag, 0, 1)
    else:
        cuda.atomic.add(flag, 0, 1)
        out[mine] = x[0]


@cuda.jit
def two_who_only_look(x, flag, out):
    """Block 1 sees that block 0 has set the flag, and so does block 2, which knows nothing of block 1 by that."""
    b = cuda.blockIdx.x
    if b == 0:
        cuda.atomic.add(flag, 0, 1)
    else:
        if b == 1:
            x[0] = 1
            cuda.threadfence()
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        if b == 2:
            out[0] = x[0]


@pytest.mark.parametrize("kernel", [adds_without_a_look, two_who_only_look], ids=lambda k: k.__name__)
def test_an_atomic_tells_those_alone_who_can_find_it_out(kernel):
    (race,) = errors(kernel, 3, 1, np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(3, np.int32))
    assert (race.kind, race.array) == ("race", "x")
    assert "threadfence" not in race.remedy


# --- atomics beside plain accesses -----------------------------------------------------------------


@cuda.jit
def total_by_last_index(total, out):
    """The last index is not the last to finish."""
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(total, 0, 1)
    cuda.syncthreads()
    if cuda.blockIdx.x == cuda.gridDim.x - 1 and cuda.threadIdx.x == 0:
        out[0] = total[0]


@cuda.jit
def reset_by_last_index(total, out):
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(total, 0, 1)
        if cuda.blockIdx.x == cuda.gridDim.x - 1:
            total[0] = 0


@cuda.jit
def normalised_by_last_index(total, out):
    cuda.atomic.add(total, cuda.threadIdx.x % total.size, 1)
    cuda.syncthreads()
    if cuda.blockIdx.x == cuda.gridDim.x - 1:
        out[cuda.threadIdx.x] = total[cuda.threadIdx.x % total.size] / cuda.gridDim.x


@cuda.jit
def of_the_own_block(total, out):
    s = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        s[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, 0, 1)
    cuda.syncthreads()
    out[cuda.grid(1)] = s[0]


@pytest.mark.parametrize(
    "kernel", [total_by_last_index, reset_by_last_index, normalised_by_last_index], ids=lambda k: k.__name__
)
@pytest.mark.parametrize("blocks", [3, 600])
def test_the_atomics_of_all_blocks_race_with_the_last_ones_plain_access(kernel, blocks):
    (race,) = errors(kernel, blocks, 64, np.zeros(1, np.int32), np.zeros(64, np.float32))
    assert (race.kind, race.array) == ("race", "total")
    assert {line_of(kernel, "atomic"), line_of(kernel, "total[", -1)} == {race.line, race.other_line}


def test_atomics_behind_a_barrier_are_known():
    assert errors(of_the_own_block, 3, 64, np.zeros(1, np.int32), np.zeros(192, np.int32)) == ()


@cuda.jit
def one_of_two_who_agreed(x, out):
    """Both blocks write a zero, which is no race, but one then counts on."""
    if cuda.threadIdx.x == 0:
        x[0] = 0
        if cuda.blockIdx.x == 1:
            x[0] = 1


def test_who_wrote_the_same_before_races_with_what_is_written_then():
    (race,) = errors(one_of_two_who_agreed, 2, 64, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert {race.line, race.other_line} == {line_of(one_of_two_who_agreed, f"x[0] = {i}") for i in (0, 1)}


@cuda.jit
def read_beside_a_swap(flag, out):
    if cuda.blockIdx.x == 0:
        out[cuda.grid(1)] = flag[0]
    else:
        cuda.atomic.cas(flag, 0, 0, 1)


@cuda.jit
def product(total, out):
    """The CUDA C++ Programming Guide's loop, whose first guess may be out of date."""
    old = total[0]
    while True:
        assumed = old
        old = cuda.atomic.cas(total, 0, assumed, assumed * 3)
        if old == assumed:
            break


@cuda.jit
def largest(total, out):
    i = cuda.grid(1)
    seen = total[0]
    while seen < i:
        before = seen
        wanted = max(before, i)
        seen = cuda.atomic.cas(total, 0, before, wanted)


@cuda.jit
def product_told(total, out):
    """A value that is passed to others may be out of date."""
    old = total[0]
    out[cuda.grid(1)] = old
    while True:
        assumed = old
        old = cuda.atomic.cas(total, 0, assumed, assumed * 3)
        if old == assumed:
            break


@cuda.jit
def product_beside_a_store(total, out):
    old = total[0]
    while True:
        assumed = old
        old = cuda.atomic.cas(total, 0, assumed, assumed * 3)
        if old == assumed:
            break
    if cuda.grid(1) == 0:
        total[0] = 1


@pytest.mark.parametrize("kernel", [product, largest], ids=lambda k: k.__name__)
def test_what_a_swap_compares_with_may_be_a_guess(kernel):
    trace = labkit.simulate(kernel, 2, 64, np.ones(1, np.uint32), np.zeros(128, np.uint32))
    assert trace.errors == ()
    assert trace.outputs[0][0] == {product: 3**128 % 2**32, largest: 127}[kernel]


@pytest.mark.parametrize("kernel", [read_beside_a_swap, product_told, product_beside_a_store], ids=lambda k: k.__name__)
def test_a_plain_access_races_with_a_swap(kernel):
    races = errors(kernel, 2, 64, np.ones(1, np.uint32), np.zeros(128, np.uint32))
    assert {(f.kind, f.array) for f in races} == {("race", "total" if "product" in kernel.__name__ else "flag")}


# --- atomics among the lanes of one warp -----------------------------------------------------------


@cuda.jit
def told_by_lane_0(arrived, out):
    """Lane 0 writes, and its atomic tells other warps of that, but not the other lanes of its warp."""
    s = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = 3
        cuda.threadfence()
        out[32] = cuda.atomic.inc(arrived, 0, 9)
    meet()
    out[t] = s[0]


def lanes_that(meet):
    return kernel_in(text_of(told_by_lane_0).replace("    meet()\n", meet), "told_by_lane_0")


def test_an_atomic_of_one_lane_tells_the_other_lanes_of_its_warp_nothing():
    made = lanes_that("")
    (finding,) = errors(made, 1, 32, np.zeros(1, np.uint32), np.zeros(33, np.float32))
    assert (finding.kind, finding.array) == ("race", "s")
    assert {finding.line, finding.other_line} == {line_of(made, "s[0] = 3"), line_of(made, "out[t] = s[0]")}
    assert "`cuda.syncwarp()`" in finding.remedy


@pytest.mark.parametrize(
    "meet",
    [
        "    cuda.syncwarp()\n",
        "    cuda.syncthreads()\n",
        "    while cuda.atomic.add(arrived, 0, 0) == 0:\n        pass\n",  # each lane finds lane 0's atomic done
    ],
)
def test_lanes_that_meet_or_find_the_atomic_done_may_read(meet):
    assert not errors(lanes_that(meet), 1, 32, np.zeros(1, np.uint32), np.zeros(33, np.float32))


def test_a_fence_alone_tells_the_other_lanes_nothing():
    made = kernel_in(
        "@cuda.jit\ndef kernel(arrived, out):\n    s = cuda.shared.array(1, float32)\n    t = cuda.threadIdx.x\n"
        "    out[32] = cuda.atomic.add(arrived, 0, 1)\n    if t == 5:\n        s[0] = 3\n    cuda.threadfence()\n"
        "    out[t] = s[0]\n"
    )
    found = errors(made, 1, 32, np.zeros(1, np.uint32), np.zeros(33, np.float32))
    assert [f.array for f in found if f.kind == "race" and f.array == "s"] == ["s"]


# --- barriers of the whole grid --------------------------------------------------------------------


@cuda.jit
def rows_in_turn(rows):
    """Each row is made from the one before it, read from the other end of the grid."""
    grid = cuda.cg.this_grid()
    col = cuda.grid(1)
    for row in range(1, rows.shape[0]):
        opposite = rows.shape[1] - col - 1
        rows[row, col] = rows[row - 1, opposite] + 1
        grid.sync()


@cuda.jit
def two_phases(x, y, out):
    i = cuda.grid(1)
    if cuda.threadIdx.x < 32:
        y[i] = x[i]
    else:
        y[i] = -x[i]
    cuda.cg.this_grid().sync()
    out[i] = y[x.size - 1 - i]


@cuda.jit
def some_blocks_wait_twice(x, out):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    out[i] = x[i]
    if cuda.blockIdx.x < 2:
        grid.sync()
    else:
        grid.sync()
    x[i] = out[x.size - 1 - i]


@cuda.jit
def the_first_block_does_not_wait(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    if cuda.blockIdx.x > 0:
        cuda.cg.this_grid().sync()


@cuda.jit
def the_last_block_has_left(x, out):
    i = cuda.grid(1)
    if cuda.blockIdx.x == cuda.gridDim.x - 1:
        return
    out[i] = x[i]
    cuda.cg.this_grid().sync()
    x[i] = out[i ^ 64]


@cuda.jit
def half_a_warp_waits(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    if cuda.threadIdx.x < 16:
        cuda.cg.this_grid().sync()


@cuda.jit(device=True)
def met():
    cuda.cg.this_grid().sync()


@cuda.jit
def blocks_meet_in_a_device_function(x, out):
    i = cuda.grid(1)
    out[i] = x[i]
    if cuda.blockIdx.x % 2 == 0:
        met()
        x[i] = out[x.size - 1 - i]
    else:
        met()
        x[i] = out[x.size - 1 - i]


def test_what_came_before_a_barrier_of_the_grid_is_known_to_all_behind_it():
    trace = labkit.simulate(rows_in_turn, 8, 64, np.zeros((12, 512), np.int32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], np.tile(np.arange(12)[:, None], 512))
    x = numbers(256)
    trace = labkit.simulate(two_phases, 4, 64, x, np.zeros_like(x), np.zeros_like(x))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[2], (x * np.tile(np.repeat([1, -1], 32), 4))[::-1])
    trace = labkit.simulate(some_blocks_wait_twice, 4, 64, x, np.zeros_like(x))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], x[::-1])
    trace = labkit.simulate(blocks_meet_in_a_device_function, 4, 64, x, np.zeros_like(x))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], x[::-1])


def test_a_barrier_of_the_grid_left_out_is_a_race_between_blocks():
    broken = without(two_phases, "cuda.cg.this_grid().sync()")
    found = errors(broken, 4, 64, numbers(256), np.zeros(256, np.float32), np.zeros(256, np.float32))
    assert {(f.kind, f.array) for f in found} == {("race", "y")}
    assert found[0].threads[0].block != found[0].threads[1].block


@pytest.mark.parametrize(
    ("kernel", "blocks"),
    [(the_first_block_does_not_wait, (1, 0)), (the_last_block_has_left, (0, 3)), (half_a_warp_waits, (0, 0))],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_a_block_that_never_comes_to_the_barrier_of_the_grid_is_named(kernel, blocks):
    (finding,) = errors(kernel, 4, 64, numbers(256), np.zeros(256, np.float32))
    assert finding.kind == "barrier"
    assert finding.line == line_of(kernel, ".sync()")
    assert tuple(t.block[0] for t in finding.threads) == blocks
    assert "whole grid" in finding.message and "hang" in finding.message


def test_a_grid_that_waits_for_itself_must_fit_on_the_gpu():
    x = np.zeros((2, 1), np.int32)
    with pytest.raises(LaunchError, match="room for 264 blocks of 1024 threads, not 265"):
        labkit.simulate(rows_in_turn, 265, 1024, x)


def test_an_atomic_does_not_order_itself_after_a_write():
    @cuda.jit
    def kernel(out):
        count = cuda.shared.array(1, np.int32)
        if cuda.threadIdx.x == 0:
            count[0] = 0
        cuda.syncwarp()  # the threads of the other warp may have counted before
        out[cuda.threadIdx.x] = cuda.atomic.add(count, 0, 1)

    (race,) = errors(kernel, 1, 64, np.zeros(64, np.int32))
    assert race.kind == "race"
    assert race.count == 32
    assert "Put `cuda.syncthreads()` between line" in race.message
    assert errors(kernel, 1, 32, np.zeros(32, np.int32)) == ()
