"""Each kind of finding: the wrong kernel gets it, in words a learner can act on, and the right one does not."""

import math
import re

import numpy as np
import pytest
from cells import kernel_in, line_of, text_of
from numba import float32, int32

import labkit
from labkit import cuda
from labkit.gemm.fp32.s03_tiled import geometry, tiled
from labkit.trace import ThreadId

TILE = 16
WARP = 32


def numbers(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def findings(kernel, grid, block, *arguments, kind=None, **options):
    trace = labkit.simulate(kernel, grid, block, *arguments, **options)
    return [f for f in trace.findings if kind in (None, f.kind)]


def only(kernel, grid, block, *arguments, **options):
    (finding,) = findings(kernel, grid, block, *arguments, **options)
    return finding


def thread(x, y=0, block=(0, 0)):
    return ThreadId((*block, 0), (x, y, 0))


# --- races ---------------------------------------------------------------------------------------


def barriers_of(kernel):
    return [i for i, line in enumerate(text_of(kernel).splitlines()) if "syncthreads" in line]


def without_line(kernel, number, **names):
    lines = text_of(kernel).splitlines()
    del lines[number]
    return kernel_in("\n".join(lines), kernel.py_func.__name__, **names)


@pytest.mark.parametrize("shape", [(32, 32, 32), (17, 40, 33), (64, 16, 48)])
@pytest.mark.parametrize("barrier", range(2))
def test_any_barrier_removed_from_the_tiled_matmul_is_a_race(barrier, shape):
    M, N, K = shape
    broken = without_line(tiled, barriers_of(tiled)[barrier], TILE=TILE)
    races = findings(broken, *geometry(M, N), numbers(M, K), numbers(K, N), zeros(M, N))
    assert {f.kind for f in races} == {"race"}
    assert {f.array for f in races} == {"A_tile", "B_tile"}
    stores = {line_of(broken, "A_tile[y, x] ="), line_of(broken, "B_tile[y, x] =")}
    for race in races:
        assert {race.line, race.other_line} & stores
        assert line_of(broken, "total +=") in (race.line, race.other_line)
        first, second = race.threads
        assert first.block == second.block and first.thread != second.thread
        assert str(race.line) in race.message and str(race.other_line) in race.message
        assert "cuda.syncthreads()" in race.message


def test_the_tiled_matmul_has_no_error():
    trace = labkit.simulate(tiled, *geometry(33, 17), numbers(33, 40), numbers(40, 17), zeros(33, 17))
    assert trace.errors == ()


@cuda.jit
def neighbour(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    y[t] = s[(t + 1) % 64]


def test_a_race_in_shared_memory_says_who_where_and_what_helps():
    race = only(neighbour, 1, 64, numbers(64), zeros(64))
    write, read = line_of(neighbour, "s[t] = x"), line_of(neighbour, "s[(t + 1)")
    assert race.message == (
        f"Race on s[32]: thread 31 of block 0 reads it at line {read} (`s[(t + 1) % 64]`), and thread 32 of block 0 "
        f"writes it at line {write} (`s[t]`). Nothing says which comes first, so what is read can be the old "
        "value or the new one. "
        f"Put `cuda.syncthreads()` between line {write} and line {read}."
    )
    assert (race.kind, race.severity, race.array, race.index) == ("race", "error", "s", (32,))
    assert race.threads == (thread(31), thread(32))
    assert (race.line, race.other_line) == (read, write)


@cuda.jit
def neighbour_in_global(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    x[i] = y[(i + 1) % y.size]


def test_a_race_between_blocks_cannot_be_fixed_by_a_barrier():
    races = findings(neighbour_in_global, 2, 32, numbers(64), zeros(64), kind="race")
    across = next(r for r in races if r.threads[0].block != r.threads[1].block)
    assert "Blocks of one launch run in any order" in across.message
    assert "syncthreads" not in across.message


@cuda.jit
def everyone_writes_one(y):
    y[0] = cuda.grid(1)


@cuda.jit
def everyone_adds_to_one(y):
    y[0] += 1


@cuda.jit
def everyone_adds_atomically(y):
    cuda.atomic.add(y, 0, 1)


@cuda.jit
def everyone_writes_the_same(y):
    y[0] = 7


@cuda.jit
def pairs_write_one(y):
    i = cuda.grid(1)
    y[i // 2] = i


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize(
    "kernel", [everyone_writes_one, everyone_adds_to_one, pairs_write_one], ids=lambda k: k.__name__
)
def test_threads_that_write_different_values_into_one_element_race(kernel, block):
    races = findings(kernel, 1, block, zeros(64), kind="race")
    assert races and all("cuda.atomic" in r.message for r in races)
    assert races[0].array == "y" and races[0].index == (0,)


@pytest.mark.parametrize("kernel", [everyone_adds_atomically, everyone_writes_the_same], ids=lambda k: k.__name__)
def test_atomics_and_writes_of_one_value_do_not_race(kernel):
    assert findings(kernel, 4, 64, zeros(64)) == []


@cuda.jit
def flag_is_set_by_many(x, found):
    i = cuda.grid(1)
    if x[i] > 0:
        found[0] = 1


def test_many_threads_may_set_a_flag():
    assert findings(flag_is_set_by_many, 4, 64, numbers(256), np.zeros(1, np.int32)) == []


@cuda.jit
def counts_then_reads(x, y):
    s = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, 0, 1)
    y[t] = s[0]


@cuda.jit
def zeroes_late(x, y):
    s = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = 0
    cuda.atomic.add(s, 0, 1)
    cuda.syncthreads()
    y[t] = s[0]


@pytest.mark.parametrize(
    ("kernel", "lines"),
    [(counts_then_reads, ("atomic.add", "y[t] = s[0]")), (zeroes_late, ("s[0] = 0", "atomic.add"))],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_an_atomic_and_a_plain_access_without_a_barrier_race(kernel, lines):
    (race,) = findings(kernel, 1, 64, numbers(64), zeros(64), kind="race")
    assert {race.line, race.other_line} == {line_of(kernel, fragment) for fragment in lines}
    assert "updates" in race.message


@cuda.jit
def lanes_exchange(x, y):
    s = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    y[t] = s[31 - t]


@cuda.jit
def lanes_exchange_unsynchronised(x, y):
    s = cuda.shared.array(WARP, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    y[t] = s[31 - t]


@cuda.jit
def warps_exchange_by_syncwarp(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    y[t] = s[63 - t]


def test_syncwarp_orders_the_lanes_of_one_warp_and_no_others():
    assert findings(lanes_exchange, 1, 32, numbers(32), zeros(32)) == []
    assert only(lanes_exchange_unsynchronised, 1, 32, numbers(32), zeros(32)).kind == "race"
    assert only(warps_exchange_by_syncwarp, 1, 64, numbers(64), zeros(64)).kind == "race"


@cuda.jit
def reduction(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 32
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    y[t] = s[0]


@pytest.mark.parametrize("barrier", range(2))
def test_any_barrier_removed_from_a_reduction_is_a_race(barrier):
    assert findings(reduction, 1, 64, numbers(64), zeros(64)) == []
    broken = without_line(reduction, barriers_of(reduction)[barrier])
    assert {f.kind for f in findings(broken, 1, 64, numbers(64), zeros(64))} == {"race"}


@cuda.jit
def histogram_without_atomics(x, counts):
    i = cuda.grid(1)
    counts[x[i]] += 1


def test_a_histogram_without_atomics_races():
    x = np.array([1, 2, 3, 1] * 16)
    races = findings(histogram_without_atomics, 1, 64, x, np.zeros(4, np.int64))
    assert {f.kind for f in races} == {"race"}
    assert {f.line for f in races} == {line_of(histogram_without_atomics, "counts[x[i]]")}
    assert all(f.index in ((1,), (2,), (3,)) for f in races)


# --- indices -------------------------------------------------------------------------------------


@cuda.jit
def unguarded(x, y):
    i = cuda.grid(1)
    y[i] = 2 * x[i]


@cuda.jit
def swapped(A, B):
    row, col = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        B[col, row] = A[col, row]


@cuda.jit
def off_by_one(x, y):
    i = cuda.grid(1)
    if i <= x.size:
        y[i] = x[i]


def test_an_index_outside_names_the_thread_the_shape_and_a_guard():
    bounds = findings(unguarded, 2, 64, zeros(100), zeros(100), kind="bounds")
    line = line_of(unguarded, "y[i] =")
    assert {(f.line, f.array) for f in bounds} == {(line, "x"), (line, "y")}
    read = next(f for f in bounds if f.array == "x")
    assert read.message == (
        f"Line {line}: thread 36 of block 1 reads x[100], but x has 100 elements. On a GPU it gets whatever is "
        "stored there. Guard the access, for instance `if i < x.size:`."
    )
    assert (read.severity, read.index, read.threads) == ("error", (100,), (thread(36, block=(1, 0)),))
    assert read.count == 28


def test_a_swapped_row_and_column_names_the_axis():
    bounds = findings(swapped, (1, 2), (16, 16), numbers(10, 20), zeros(10, 20), kind="bounds")
    (read,) = (f for f in bounds if f.array == "A")
    assert read.index == (10, 0)
    assert read.threads == (thread(0, 10),)
    assert "A[10, 0], but A has shape (10, 20)" in read.message
    assert "`if col < A.shape[0]:`" in read.message


def test_one_element_too_many_is_found_and_nothing_else_is_written():
    trace = labkit.simulate(off_by_one, 1, 128, numbers(100), zeros(100))
    assert {(f.kind, f.index, f.count) for f in trace.findings} == {("bounds", (100,), 1)}
    np.testing.assert_array_equal(trace.outputs[1], numbers(100))


@cuda.jit
def shared_overrun(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[t]


@cuda.jit
def local_overrun(x, y):
    mine = cuda.local.array(4, float32)
    i = cuda.grid(1)
    for k in range(5):
        mine[k] = x[i] * k
    y[i] = mine[0]


def test_shared_and_local_arrays_have_bounds_too():
    shared = findings(shared_overrun, 1, 64, zeros(64), zeros(64), kind="bounds")
    assert shared[0].index == (32,) and "s has 32 elements" in shared[0].message
    local = findings(local_overrun, 1, 32, zeros(32), zeros(32), kind="bounds")
    assert local[0].index == (4,) and "mine has 4 elements" in local[0].message


@cuda.jit
def left_neighbour(x, y):
    i = cuda.grid(1)
    y[i] = x[i - 1]


@cuda.jit
def left_neighbour_guarded(x, y):
    i = cuda.grid(1)
    y[i] = x[i - 1] if i > 0 else x[i]


def test_a_negative_index_wraps_and_is_told():
    trace = labkit.simulate(left_neighbour, 1, 64, numbers(64), zeros(64))
    (finding,) = trace.findings
    line = line_of(left_neighbour, "y[i] =")
    assert finding.message == (
        f"Line {line}: thread 0 of block 0 reads x[-1]. numba counts a negative index from the end, as Python does, "
        "so this is element 63 and raises no error. Guard the index unless you mean that."
    )
    assert (finding.kind, finding.severity, finding.count) == ("negative-index", "advice", 1)
    np.testing.assert_array_equal(trace.outputs[1], np.roll(numbers(64), 1))
    assert findings(left_neighbour_guarded, 1, 64, numbers(64), zeros(64)) == []


@cuda.jit
def far_left(x, y):
    i = cuda.grid(1)
    y[i] = x[i - 2 * x.size]


def test_an_index_too_far_below_zero_is_out_of_bounds():
    bounds = only(far_left, 1, 32, numbers(32), zeros(32))
    assert (bounds.kind, bounds.index) == ("bounds", (-64,))
    assert "0 <= " in bounds.message


# --- values that nothing wrote ---------------------------------------------------------------------


@cuda.jit
def sums_unfilled_shared(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 40:
        s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[t]


@cuda.jit
def adds_to_unfilled_shared(x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] += x[t]
    y[t] = s[t]


@cuda.jit
def counts_in_unfilled_shared(x, y):
    s = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    cuda.atomic.add(s, t % 4, 1)
    cuda.syncthreads()
    y[t] = s[t % 4]


@cuda.jit
def adds_to_unfilled_local(x, y):
    mine = cuda.local.array(4, float32)
    i = cuda.grid(1)
    for k in range(4):
        mine[k] += x[i]
    y[i] = mine[0]


def test_reading_shared_memory_that_nothing_filled():
    finding = only(sums_unfilled_shared, 1, 64, numbers(64), zeros(64))
    line = line_of(sums_unfilled_shared, "y[t] =")
    assert finding.message == (
        f"Line {line}: thread 40 of block 0 reads s[40], which nothing has written. Shared memory starts with "
        "whatever was there before, so the result can change from run to run. Line "
        f"{line_of(sums_unfilled_shared, 's[t] =')} stores only where `t < 40`: let every element that line {line} "
        "reads be stored; where there is nothing to load, a value that changes no result, such as 0 for a sum."
    )
    assert (finding.kind, finding.severity, finding.index) == ("uninitialised", "error", (40,))
    assert finding.count == 24


def test_a_tile_with_more_elements_than_threads_is_filled_in_a_loop():
    kernel = kernel_in("""
@cuda.jit
def kernel(x, y):
    s = cuda.shared.array(100, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[t + 36]
""")
    assert only(kernel, 1, 64, numbers(64), zeros(64)).message.endswith(
        "Line 5 stores one element per thread, and s has 100 for 64 threads: let each thread store several, in a loop "
        "whose step is the number of threads."
    )


def test_threads_that_return_before_they_fill_a_tile_are_to_stay():
    kernel = kernel_in("""
@cuda.jit
def kernel(x):
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    if t >= 40:
        return
    s[t] = t
    cuda.syncthreads()
    x[t] = s[63 - t]
""")
    found = findings(kernel, 1, 64, np.zeros(64, np.int32), kind="uninitialised")
    assert found[0].remedy.startswith(
        f"The threads that return in line {line_of(kernel, 'return')} store nothing in line {line_of(kernel, 's[t]')}"
    )


@cuda.jit
def keeps_for_itself(x, y):
    mine = cuda.local.array(32, float32)
    t = cuda.threadIdx.x
    mine[t] = x[t]
    y[t] = mine[31 - t]


def test_a_local_array_is_not_set_by_other_threads():
    finding = only(keeps_for_itself, 1, 32, numbers(32), zeros(32))
    assert finding.remedy.endswith(" If other threads are to set them, mine must be a `cuda.shared.array`.")


@cuda.jit
def counts_behind_a_barrier(x, y, n):
    if cuda.threadIdx.x == 0:
        y[cuda.blockIdx.x] = x[0]
        cuda.syncthreads()
        before = cuda.atomic.add(n, 0, 1)
        y[cuda.blockIdx.x] = before


def test_a_barrier_is_no_fence_for_other_blocks():
    found = findings(counts_behind_a_barrier, 2, 32, numbers(1), zeros(2), np.zeros(1, np.int32), kind="barrier")
    assert found[0].remedy.startswith("A barrier orders nothing for other blocks: ")
    assert "`cuda.threadfence()`" in found[0].remedy


@pytest.mark.parametrize(
    ("kernel", "array", "fragment"),
    [
        (adds_to_unfilled_shared, "s", "s[t] +="),
        (counts_in_unfilled_shared, "s", "atomic"),
        (adds_to_unfilled_local, "mine", "mine[k] +="),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_adding_to_memory_that_nothing_filled(kernel, array, fragment):
    found = findings(kernel, 1, 64, numbers(64), zeros(64), kind="uninitialised")
    assert [f.array for f in found] == [array]  # once: what follows is not told again
    assert found[0].line == line_of(kernel, fragment)
    code = found[0].remedy.split("`")[1]
    made = next(line for line in text_of(kernel).splitlines() if ".array(" in line)
    filled = text_of(kernel).replace(made, f"{made}\n    {code}\n    cuda.syncthreads()")
    assert "cuda.syncthreads" in found[0].remedy or "local" in made
    filled = kernel_in(filled, kernel.py_func.__name__)
    assert findings(filled, 1, 64, numbers(64), zeros(64), kind="uninitialised") == []


@cuda.jit
def reads_what_the_host_did_not_fill(x, y):
    cuda.atomic.add(y, (0, cuda.grid(1) % 4), x[0])


def test_a_new_device_array_is_to_be_made_from_zeros():
    y = cuda.device_array((1, 4), np.float32)
    found = only(reads_what_the_host_did_not_fill, 1, 32, numbers(1), y)
    assert f"before line {found.line} reads it" in found.remedy
    full = eval(found.remedy.split("`")[1], {"np": np, "cuda": cuda})
    assert (full.shape, full.dtype) == (y.shape, y.dtype)
    assert findings(reads_what_the_host_did_not_fill, 1, 32, numbers(1), full) == []


@cuda.jit
def never_stores(x, y):
    i = cuda.grid(1)
    if i > x.size:
        y[i] = x[i]


@cuda.jit
def forgets_to_store(x, y):
    i = cuda.grid(1)
    total = float32(0)
    if i < x.size:
        total += x[i]


def test_an_output_that_no_thread_stores_to_may_be_meant():
    finding = only(never_stores, 1, 64, numbers(64), zeros(64))
    assert (finding.kind, finding.severity, finding.array) == ("unwritten", "advice", "y")
    assert finding.line == line_of(never_stores, "y[i] =")


@cuda.jit
def scales(x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] *= float32(2)


def test_a_matrix_that_is_launched_along_one_axis():
    trace = labkit.simulate(scales, 2, 32, np.ones((16, 40), np.float32))
    (finding,) = (f for f in trace.findings if f.kind == "one-axis")
    assert finding.severity == "advice"
    assert finding.remedy == "Launch with pairs, `[(1, 3), (16, 16)]`."
    pairs = labkit.simulate(scales, (2, 2), (8, 8), np.ones((16, 16), np.float32))
    assert "one-axis" not in {f.kind for f in pairs.findings}
    column = labkit.simulate(scales, 1, 32, np.ones((16, 1), np.float32))
    assert "one-axis" not in {f.kind for f in column.findings}


def test_a_kernel_without_any_store():
    finding = only(forgets_to_store, 1, 64, numbers(64), zeros(64))
    assert (finding.kind, finding.severity) == ("unwritten", "error")
    assert finding.line == line_of(forgets_to_store, "def ")
    assert "never stores" in finding.message


# --- speed -----------------------------------------------------------------------------------------


@cuda.jit
def accumulates_in_float64(x, y):
    i = cuda.grid(1)
    total = 0.0
    for _k in range(4):
        total += x[i] * x[i]
    y[i] = total


@cuda.jit
def literal_is_float64(x, y):
    i = cuda.grid(1)
    y[i] = 0.5 * x[i]


@cuda.jit
def integer_widens(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * i


@cuda.jit
def stays_in_float32(x, y):
    i = cuda.grid(1)
    y[i] = float32(0.5) * x[i] * float32(i)


@pytest.mark.parametrize(
    ("kernel", "fragment", "remedy"),
    [
        (accumulates_in_float64, "total +=", "write `total = float32(0.0)` there"),
        (literal_is_float64, "0.5 *", "write `float32(0.5)`"),
        (integer_widens, "x[i] * i", "`i` is int64; write `float32(i)`"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_accidental_float64_names_its_cause(kernel, fragment, remedy):
    finding = only(kernel, 1, 64, numbers(64), zeros(64))
    assert (finding.kind, finding.severity) == ("float64", "advice")
    assert finding.line == line_of(kernel, fragment)
    assert remedy in finding.message and "float64" in finding.message


WIDE = {  # the statement, the constant or operand that is told, and the statement in float32
    "y[i] = x[i] * 2.0**64": ("`2.0 ** 64` is float64; write `float32(2.0 ** 64)`", "y[i] = x[i] * float32(2.0**64)"),
    "y[i] = x[i] * math.pi": ("`math.pi` is float64; write `float32(math.pi)`", "y[i] = x[i] * float32(math.pi)"),
    "y[i] = x[i] * SCALE": ("`SCALE` is float64; write `float32(SCALE)`", "y[i] = x[i] * float32(SCALE)"),
    "y[i] = x[i] * wide[i]": ("`wide[i]` is float64; make the array float32", "y[i] = x[i] * x[i]"),
    "y[int(i / 2)] = i": ("`i / 2` divides in float64", "y[i // 2] = i"),
    "y[int64(i / 2)] = i": ("write `i // 2`", "y[i // 2] = i"),
    "y[int((i + 2) / 3)] = i": ("write `(i + 2) // 3`", "y[(i + 2) // 3] = i"),
}


@pytest.mark.parametrize("wide", WIDE)
def test_a_wide_operand_or_quotient_is_named_as_it_is_written(wide):
    told, narrow = WIDE[wide]
    text = "@cuda.jit\ndef kernel(x, y, wide):\n    i = cuda.grid(1)\n    {}\n"
    names = dict(math=math, SCALE=1.5)
    launch = 1, 32, numbers(32), zeros(32), np.ones(32)
    (finding,) = findings(kernel_in(text.format(wide), **names), *launch, kind="float64")
    assert finding.line == 4 and told in finding.message
    assert findings(kernel_in(text.format(narrow), **names), *launch, kind="float64") == []


UNKNOWN = {"np": None, "float32": None, "float64": None, "int32": None, "int64": None}
NAMES_OF_FLOAT32 = {  # the names that a cell knows besides cuda
    "np.float32": {"np": np},
    "numpy.float32": {"numpy": np},
    "float32": {"np": np, "float32": float32},
    "single": {"single": np.float32},
    "cuda.float32": {},
}


@pytest.mark.parametrize("cast", NAMES_OF_FLOAT32)
def test_advice_writes_float32_as_the_cell_can(cast):
    text = "@cuda.jit\ndef kernel(x, y):\n    total = {}\n    for k in range(4):\n        total += x[k]\n    {}\n"
    launch, names = (1, 1, numbers(4), zeros(1)), UNKNOWN | NAMES_OF_FLOAT32[cast]
    store = "y[0] = total"
    (finding,) = findings(kernel_in(text.format("0.0", store), **names), *launch, kind="float64")
    assert f"write `total = {cast}(0.0)` there" in finding.message
    assert findings(kernel_in(text.format(f"{cast}(0.0)", store), **names), *launch, kind="float64") == []
    start, half = f"{cast}(0.0)", "y[0] = 0.5 * total"
    (finding,) = findings(kernel_in(text.format(start, half), **names), *launch, kind="float64")
    assert f"write `{cast}(0.5)`" in finding.message
    half = half.replace("0.5", f"{cast}(0.5)")
    assert findings(kernel_in(text.format(start, half), **names), *launch, kind="float64") == []


def test_float64_in_a_function_of_another_file_is_told_without_its_names():
    kernel = kernel_in("@cuda.jit\ndef kernel(x, y):\n    y[cuda.grid(1)] = np.sum(x)\n", np=np)
    (finding,) = findings(kernel, 1, 32, numbers(32), zeros(32), kind="float64")
    assert "in the function that is called here" in finding.message and "zero" not in finding.message


def test_float32_throughout_gets_no_advice():
    assert findings(stays_in_float32, 1, 64, numbers(64), zeros(64)) == []
    assert findings(literal_is_float64, 1, 64, numbers(64).astype(float), np.zeros(64)) == []


@cuda.jit
def column_walk(A, B):
    row, col = cuda.grid(2)
    B[row, col] = A[row, col]


@cuda.jit
def row_walk(A, B):
    col, row = cuda.grid(2)
    B[row, col] = A[row, col]


def test_uncoalesced_accesses_are_told_with_their_sectors():
    found = findings(column_walk, 1, (32, 8), numbers(32, 32), zeros(32, 32))
    assert {f.kind for f in found} == {"uncoalesced"}
    assert {f.array for f in found} == {"A", "B"}
    assert "touches 32.0 sectors of 32 bytes on average, where 4 would do. " in found[0].message
    assert "moves 8 times as many as it has to, and where it sets the time, the line takes up to 8 times as long." in (
        found[0].fact
    )
    assert found[0].remedy == "Let neighbouring threads (threadIdx.x) take elements that are neighbours in memory."
    assert findings(row_walk, 1, (32, 8), numbers(32, 32), zeros(32, 32)) == []


@cuda.jit
def first_of_each_row(A, B):
    row = cuda.grid(1)
    B[row, 0] = A[row, 0]


@pytest.mark.parametrize("block", [(8, 8), (4, 16), (1, 64)])
def test_a_narrow_block_is_told_by_its_width(block):
    image, grid = np.zeros((64, 64), np.uint8), (64 // block[0], 64 // block[1])
    found = findings(row_walk, grid, block, image, image.copy())
    assert {f.kind for f in found} == {"uncoalesced"}
    spans = (
        f"A block is {block[0]} thread{'s' * (block[0] > 1)} wide, so that a warp spans {32 // block[0]} of its rows"
    )
    assert {f.remedy for f in found} == {f"{spans}: make its x extent a multiple of 32, such as (32, 2)."}
    assert findings(row_walk, (2, 32), (32, 2), image, image.copy()) == []


def test_a_narrow_block_is_not_blamed_for_a_walk_along_columns():
    found = findings(column_walk, 2, (16, 16), numbers(32, 16), zeros(32, 16))
    found += findings(first_of_each_row, 1, 16, numbers(16, 16), zeros(16, 16), kind="uncoalesced")
    assert {f.remedy[:22] for f in found} == {"Let neighbouring threa"}


@cuda.jit
def shared_transpose(x, y):
    s = cuda.shared.array((32, 32), float32)
    t = cuda.threadIdx.x
    for row in range(32):
        s[row, t] = x[row, t]
    cuda.syncwarp()
    for row in range(32):
        y[row, t] = s[t, row]


def test_bank_conflicts_are_told_and_padding_ends_them():
    finding = only(shared_transpose, 1, 32, numbers(32, 32), zeros(32, 32))
    assert (finding.kind, finding.line) == ("bank-conflict", line_of(shared_transpose, "= s[t, row]"))
    assert "takes 32.0 wavefronts of shared memory on average, where 1 would do. " in finding.message
    assert "32 times as long as it has to be: 992 cycles more in the whole launch." in finding.fact
    assert finding.remedy.startswith("Pad the rows by one element")
    padded = kernel_in(text_of(shared_transpose).replace("(32, 32)", "(32, 33)"))
    assert findings(padded, 1, 32, numbers(32, 32), zeros(32, 32)) == []


@pytest.mark.parametrize(("block", "idle"), [(1, 31), (63, 1), (33, 31), ((3, 3), 23), (64, 0), ((16, 16), 0)])
def test_a_last_warp_with_idle_lanes_is_told(block, idle):
    @cuda.jit
    def nothing(y):
        if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
            y[0] = 1

    found = findings(nothing, 1, block, zeros(1), kind="idle-lanes")
    assert len(found) == (idle > 0)
    if found:
        assert f"leaves {idle} lane{'s' * (idle > 1)} of" in found[0].message and found[0].severity == "advice"
        assert ("a block of 1 thread " in found[0].message) == (block == 1)


# --- globals -----------------------------------------------------------------------------------------


def test_a_changed_global_stays_frozen_and_is_told():
    kernel = kernel_in(
        """
        SCALE = 2

        @cuda.jit
        def scaled(x, y):
            i = cuda.grid(1)
            y[i] = x[i] * SCALE
        """
    )
    x = np.arange(32)
    assert findings(kernel, 1, 32, x, np.zeros(32, np.int64)) == []
    kernel.py_func.__globals__["SCALE"] = 5
    trace = labkit.simulate(kernel, 1, 32, x, np.zeros(32, np.int64))
    np.testing.assert_array_equal(trace.outputs[1], 2 * x)
    (finding,) = trace.findings
    assert (finding.kind, finding.severity) == ("changed-global", "advice")
    for word in ("`SCALE` is 5 now", "when it was 2", "labkit.specialise(kernel, SCALE=5)"):
        assert word in finding.message
    kernel.py_func.__globals__["SCALE"] = 2
    assert findings(kernel, 1, 32, x, np.zeros(32, np.int64)) == []


# --- all of them ---------------------------------------------------------------------------------------


def test_every_message_is_made_of_whole_sentences():
    x, y = numbers(64), zeros(64)
    found = [
        *findings(neighbour, 1, 64, x, y),
        *findings(unguarded, 2, 64, x, y),
        *findings(left_neighbour, 1, 64, x, y),
        *findings(sums_unfilled_shared, 1, 64, x, y),
        *findings(never_stores, 1, 64, x, y),
        *findings(literal_is_float64, 1, 33, x, y),
        *findings(column_walk, 1, (32, 8), numbers(32, 32), zeros(32, 32)),
        *findings(shared_transpose, 1, 32, numbers(32, 32), zeros(32, 32)),
    ]
    assert len({f.kind for f in found}) == 9
    for finding in found:
        assert finding.message.endswith(".") and finding.message[0].isupper()
        assert re.search(r"[Ll]ine \d+", finding.message)
        assert "  " not in finding.message and "\n" not in finding.message
        assert finding.line > 0


@cuda.jit
def shifted_in_place(x):
    i = cuda.grid(1)
    x[i] = x[(i + 1) % x.size]


@cuda.jit
def summed_over_a_warp(x, y):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    distance = 1
    while distance < 32:
        left = s[t - distance] if t >= distance else float32(0)
        cuda.syncwarp()
        s[t] += left
        cuda.syncwarp()
        distance *= 2
    y[t] = s[t]


@cuda.jit
def counted_then_changed(x, tickets, y):
    ticket = cuda.atomic.add(tickets, 0, 1)
    value = x[0]
    if cuda.blockIdx.x == 1:
        x[0] = value + 1
    y[cuda.blockIdx.x] = ticket


def test_a_write_races_with_a_read_though_the_data_happen_to_be_equal():
    race = only(shifted_in_place, 2, 64, np.ones(128, np.float32))
    assert race.kind == "race"


def test_a_read_of_ones_own_element_does_not_hide_that_the_neighbours_read_it_before_a_syncwarp():
    trace = labkit.simulate(summed_over_a_warp, 1, 32, numbers(32), zeros(32))
    assert trace.errors == ()
    np.testing.assert_allclose(trace.outputs[1], np.cumsum(numbers(32)), atol=1e-5)


def test_a_read_of_another_block_is_remembered_where_atomics_order_accesses():
    arguments = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32)
    (race,) = findings(counted_then_changed, 2, 1, *arguments, kind="race")
    assert {thread.block[0] for thread in race.threads} == {0, 1}


@cuda.jit
def tile_too_small(x, y):
    s = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]


def test_a_tile_smaller_than_its_block_is_to_be_made_larger():
    (outside,) = findings(tile_too_small, 1, 32, numbers(32), zeros(32), kind="bounds")
    assert "Make s as large as the block needs, or guard the access, for instance `if t < s.size:`." in outside.message
    assert "On a GPU it overwrites other data." in outside.message


RACES = {
    "s[0] = t": ("either value can be the one that stays", "Give each thread an element of its own"),
    "s[t // 32] = t": ("either value can be the one that stays", "let one of them store, `if t % 32 == 0:`"),
    "i = t * t\n    s[i % 9] = t": (
        "either value can be the one that stays",
        "The index `i % 9` is the same in both: let it",
    ),
    "x[64 * b + t] = 1\n    x[64 * b + 63 - t] = 2": (
        "either value can be the one that stays",
        "check the index in both",
    ),
    "s[0] += t": ("the old value or the new one", "Add in one step: `cuda.atomic.add(s, 0, t)`"),
    "s[t] = s[(t + 1) % 64]": ("the old value or the new one", "Split the line: read into a variable"),
    "s[t] = 1\n    cuda.atomic.add(s, 63 - t, 1)": ("the update can be lost", "Put `cuda.syncthreads()` between"),
    "x[t] = x[(t + 64 + b) % 128]": ("the old value or the new one", "write the results to a second array"),
    "x[0] = b": ("either value can be the one that stays", "give each block elements of its own"),
}


def exchange(partners):
    return kernel_in(f"""
@cuda.jit
def kernel(x):
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    for partner in {partners}:
        s[t] = t
        x[t] = s[t ^ partner]
        cuda.syncthreads()
""")


@pytest.mark.parametrize(
    ("partners", "threads", "cure"),
    [
        ("(1,)", 64, "Put `cuda.syncwarp()` between line 6 and line 7."),
        (
            "(1,)",
            32,
            "Put `cuda.syncwarp()` (`cuda.syncthreads()` if blocks are to have more warps) between",
        ),
        ("(32,)", 64, "Put `cuda.syncthreads()` between line 6 and line 7."),
        ("(1, 32)", 64, "Put `cuda.syncthreads()` between line 6 and line 7."),
        ("(32, 1)", 64, "Put `cuda.syncthreads()` between line 6 and line 7."),
    ],
)
def test_lanes_of_one_warp_are_told_to_wait_for_their_warp_alone(partners, threads, cure):
    (race,) = findings(exchange(partners), 1, threads, np.zeros(64, np.int32), kind="race")
    assert race.remedy.startswith(cure)
    assert race.count == threads * len(eval(partners))


def test_lanes_of_one_warp_are_told_to_split_a_line_around_their_warps_barrier():
    @cuda.jit
    def shifted(x):
        t = cuda.threadIdx.x
        x[t] = x[t ^ 1]

    (race,) = findings(shifted, 1, 64, numbers(64), kind="race")
    assert race.remedy == "Split the line: read into a variable, let all threads wait at `cuda.syncwarp()`, then write."


@pytest.mark.parametrize("line", RACES)
def test_a_race_says_what_it_does_to_the_result_and_how_to_fix_it(line):
    effect, cure = RACES[line]
    kernel = kernel_in(f"""
@cuda.jit
def kernel(x):
    s = cuda.shared.array(64, int32)
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    s[t] = 0
    cuda.syncthreads()
    {line}
    cuda.syncthreads()
    x[128 + cuda.grid(1)] = s[t]
""")
    race = next(f for f in findings(kernel, 2, 64, np.zeros(256, np.int32), kind="race"))
    assert f"so {'what is read can be ' * ('the old' in effect)}{effect}. " in race.message
    assert cure in race.remedy
    assert race.message.endswith(race.remedy)
