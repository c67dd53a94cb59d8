"""Dynamic shared memory: all arrays of a block begin at one byte, whatever their dtypes."""

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import float32, float64, int8, int32, int64, uint32

import labkit
from labkit import cuda, ptx
from labkit.simulator.errors import LaunchError
from labkit.simulator.explorer.schedules import explore

THREADS = 64
SECOND_BYTE = 8 * THREADS  # of two arrays
PAIR = np.dtype([("low", np.int32), ("high", np.float32)])


def simulated(kernel, *arguments, shared_bytes=THREADS * 8, grid=3):
    return labkit.simulate(kernel, grid, THREADS, *arguments, shared_bytes=shared_bytes)


def result():
    return np.zeros(3 * THREADS, np.int64)


def errors(trace):
    return [(f.kind, f.array, f.line) for f in trace.errors]


@cuda.jit
def one_after_the_other(out):
    floats = cuda.shared.array(0, float32)[:THREADS]
    integers = cuda.shared.array(0, int32)[THREADS:]
    t = cuda.threadIdx.x
    floats[t] = t + 0.5
    integers[t] = 3 * t
    cuda.syncthreads()
    other = THREADS - 1 - t
    out[cuda.grid(1)] = int64(floats[other] * 2) + integers[other]


def test_slices_that_lie_behind_one_another_do_not_disturb_each_other():
    trace = simulated(one_after_the_other, result())
    other = np.tile(np.arange(THREADS)[::-1], 3)
    np.testing.assert_array_equal(trace.outputs[0], 2 * other + 1 + 3 * other)
    assert not trace.errors
    assert trace.shared_bytes == THREADS * 8


@cuda.jit
def bits_of_floats(out):
    floats = cuda.shared.array(0, float32)
    bits = cuda.shared.array(0, uint32)
    t = cuda.threadIdx.x
    floats[t] = t
    out[cuda.grid(1)] = bits[t]


@cuda.jit
def halves_of_wide_integers(out):
    wide = cuda.shared.array(0, int64)
    narrow = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    narrow[2 * t] = t
    narrow[2 * t + 1] = 1
    out[cuda.grid(1)] = wide[t]


@cuda.jit
def same_dtype_twice(out):
    a = cuda.shared.array(0, int64)
    b = cuda.shared.array(0, int64)
    t = cuda.threadIdx.x
    a[t] = t
    cuda.syncthreads()
    out[cuda.grid(1)] = b[(t + 1) % THREADS]


@cuda.jit
def fields_of_records(out):
    pairs = cuda.shared.array(0, PAIR)
    words = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    pairs[t].low = t
    pairs[t].high = 1
    out[cuda.grid(1)] = words[2 * t]


@pytest.mark.parametrize(
    "kernel, expected",
    [
        (bits_of_floats, np.arange(THREADS, dtype=np.float32).view(np.uint32)),
        (halves_of_wide_integers, np.arange(THREADS) + (1 << 32)),
        (same_dtype_twice, (np.arange(THREADS) + 1) % THREADS),
        (fields_of_records, np.arange(THREADS)),
    ],
)
def test_what_is_written_as_one_dtype_is_read_as_another(kernel, expected):
    trace = simulated(kernel, result())
    np.testing.assert_array_equal(trace.outputs[0], np.tile(expected, 3))
    assert not trace.errors


@cuda.jit
def overwritten_through_the_other(out):
    floats = cuda.shared.array(0, float32)
    integers = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    floats[t] = t
    integers[(t + 32) % THREADS] = t  # race
    cuda.syncthreads()
    out[cuda.grid(1)] = integers[t]


@cuda.jit
def half_overwritten(out):
    wide = cuda.shared.array(0, float64)
    bytes_ = cuda.shared.array(0, int8)
    t = cuda.threadIdx.x
    wide[t] = t
    if t == 40:
        bytes_[15] = 1  # race
    cuda.syncthreads()
    out[cuda.grid(1)] = int64(wide[t])


@cuda.jit
def read_too_early(out):
    words = cuda.shared.array(0, int32)
    wide = cuda.shared.array(0, int64)
    t = cuda.threadIdx.x
    words[t] = t
    words[t + THREADS] = t
    out[cuda.grid(1)] = wide[THREADS - 1 - t]  # race


@cuda.jit
def counted_without_a_barrier(out):
    words = cuda.shared.array(0, int32)
    wide = cuda.shared.array(0, int64)
    t = cuda.threadIdx.x
    words[t] = 0
    words[t + THREADS] = 0
    cuda.atomic.add(wide, 0, 1)  # race
    out[cuda.grid(1)] = 0


@cuda.jit
def field_overwritten(out):
    pairs = cuda.shared.array(0, PAIR)
    words = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    pairs[t].low = t
    words[t] = t  # race
    out[cuda.grid(1)] = 0


@pytest.mark.parametrize(
    "kernel, array, words",
    [
        (overwritten_through_the_other, "integers", "floats, which begins at the same byte"),
        (half_overwritten, "bytes_", "wide, which begins at the same byte"),
        (read_too_early, "wide", "words, which begins at the same byte"),
        (counted_without_a_barrier, "wide", "words, which begins at the same byte"),
        (field_overwritten, "words", "pairs, which begins at the same byte"),
    ],
)
def test_a_race_through_two_dtypes_is_found(kernel, array, words):
    trace = simulated(kernel, result())
    assert errors(trace) == [("race", array, line_of(kernel, "# race"))]
    assert words in trace.errors[0].message


@cuda.jit
def half_written(out):
    words = cuda.shared.array(0, int32)
    wide = cuda.shared.array(0, int64)
    t = cuda.threadIdx.x
    words[2 * t] = t
    out[cuda.grid(1)] = wide[t]  # half


def test_an_element_of_which_a_part_is_unwritten_is_found():
    trace = simulated(half_written, result())
    assert errors(trace) == [("uninitialised", "wide", line_of(half_written, "# half"))]
    assert trace.errors[0].count == 3 * THREADS


def test_an_index_behind_the_dynamic_memory_is_found_by_each_dtype():
    trace = simulated(halves_of_wide_integers, result(), shared_bytes=THREADS * 8 - 4)
    assert [(f.kind, f.array, f.index) for f in trace.errors] == [
        ("bounds", "narrow", (127,)),
        ("bounds", "wide", (63,)),
    ]


def test_blocks_keep_their_own_where_their_bytes_are_no_multiple_of_an_element():
    trace = simulated(bits_of_floats, result(), shared_bytes=THREADS * 4 + 2)
    np.testing.assert_array_equal(trace.outputs[0], np.tile(np.arange(THREADS, dtype=np.float32).view(np.uint32), 3))
    assert not trace.errors


def test_orders_are_explored_with_one_dtype_and_refused_with_several():
    assert explore(same_dtype_twice, 1, THREADS, result(), shared_bytes=THREADS * 8).outcomes
    with pytest.raises(LaunchError, match="several dtypes"):
        explore(bits_of_floats, 1, THREADS, result(), shared_bytes=THREADS * 4)


LARGE = """
@cuda.jit
def large(x):
    kept = cuda.shared.array(SIZE, float32)
    kept[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    x[cuda.threadIdx.x] = kept[31 - cuda.threadIdx.x]
"""


@pytest.mark.parametrize("gpu, most", [("H100 SXM", 227), ("A100 SXM", 163), ("T4", 64)])
def test_a_launch_may_ask_for_as_much_as_the_gpu_gives_a_block(gpu, most):
    kernel, x = kernel_in(LARGE, SIZE=0), np.arange(32, dtype=np.float32)
    trace = labkit.simulate(kernel, 1, 32, x, shared_bytes=most * 1024, gpu=gpu)
    assert not trace.errors and np.array_equal(trace.outputs[0], x[::-1])
    with pytest.raises(LaunchError, match=rf"one of a {gpu} gets {most * 1024} at most; use smaller tiles"):
        labkit.simulate(kernel, 1, 32, x, shared_bytes=most * 1024 + 4, gpu=gpu)


def test_an_array_of_a_fixed_size_gets_48_kb():
    x = np.arange(32, dtype=np.float32)
    assert not labkit.simulate(kernel_in(LARGE, SIZE=12 * 1024), 1, 32, x).errors
    with pytest.raises(LaunchError, match="fixed size get 49152; .*`ptx.shared_array.* up to 232448 bytes on one H100"):
        labkit.simulate(kernel_in(LARGE, SIZE=12 * 1024 + 1), 1, 32, x)


TWO_NAMES = """
@cuda.jit
def kernel(out):
    a = cuda.shared.array(0, float32)
    b = {second}
    t = cuda.threadIdx.x
    a[t] = 2 * t
    b[{index}] = 3 * t
    cuda.syncthreads()
    out[cuda.grid(1)] = a[t] + b[63 - t]
"""
APART = np.tile(2 * np.arange(THREADS) + 3 * np.arange(THREADS)[::-1], 3)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("index", ["t", "63 - t"])
def test_two_names_of_the_same_memory_are_to_be_slices(dtype, index):
    array = f"cuda.shared.array(0, {dtype})"
    kernel = kernel_in(TWO_NAMES.format(second=array, index=index))
    found = [f for f in simulated(kernel, result()).findings if f.kind in ("race", "same-memory")]
    if (dtype, index) == ("int32", "t"):  # each thread reads the bits of its own store, which may be meant
        assert found == []
        return
    assert found and {f.kind for f in found} == {"race" if index == "63 - t" else "same-memory"}
    assert {f.remedy for f in found} == {found[0].remedy} and found[0].message.endswith(found[0].remedy)
    second = found[0].remedy.split("`")[3].removeprefix("b = ").replace("...", dtype).replace("[n:]", "[64:]")
    right = simulated(kernel_in(TWO_NAMES.format(second=second, index="t")), result())
    np.testing.assert_array_equal(right.outputs[0], APART)
    assert not [f for f in right.findings if f.kind in ("race", "same-memory")]


@cuda.jit
def in_two_phases(out):
    first = cuda.shared.array(0, float32)
    second = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    first[t] = t
    cuda.syncthreads()
    out[cuda.grid(1)] = first[THREADS - 1 - t]
    cuda.syncthreads()
    second[t] = 2 * t
    cuda.syncthreads()
    out[cuda.grid(1)] += second[THREADS - 1 - t]


def test_memory_that_one_name_takes_over_from_another_is_meant():
    assert "same-memory" not in {f.kind for f in simulated(in_two_phases, result()).findings}


@cuda.jit
def two_arrays(out):
    first = ptx.shared_array(0, (2, THREADS), float32)
    second = ptx.shared_array(SECOND_BYTE, THREADS, float32)
    t = cuda.threadIdx.x
    first[0, t] = second[t] = t
    out[cuda.grid(1)] = int64(first[0, t] + second[t])


def test_a_trace_says_where_each_of_several_arrays_begins():
    trace = simulated(two_arrays, result(), shared_bytes=12 * THREADS)
    assert trace.array("second").base_address == trace.array("first").base_address + SECOND_BYTE
