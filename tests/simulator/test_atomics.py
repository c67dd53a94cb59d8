"""Atomics: what each leaves behind, what it returns, and which dtypes and indices it takes."""

import numpy as np
import pytest
from cells import kernel_in
from numba import types
from numba_oracle import type_in_numba

import labkit
from labkit import cuda
from labkit.simulator import language, numba_types
from labkit.simulator.errors import KernelError

INTEGERS = [np.int32, np.int64, np.uint32, np.uint64]
FLOATS = [np.float32, np.float64]


def in_turn(change, start, values):
    """(what each value in turn reads, what is there at last)."""
    read = []
    for value in values:
        read.append(start)
        start = start.dtype.type(change(start, value))
    return np.array(read), start


def counted_up(old, value):
    return old + 1 if old < value else 0


def counted_down(old, value):
    return old - 1 if 0 < old <= value else value


CHANGES = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "max": max,
    "min": min,
    "nanmax": max,
    "nanmin": min,
    "and_": lambda old, value: old & value,
    "or_": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "inc": counted_up,
    "dec": counted_down,
}


def kernel_of(name, arguments):
    return kernel_in(f"""
        @cuda.jit
        def kernel(x, there, read):
            t = cuda.threadIdx.x
            read[t] = cuda.atomic.{name}(there, {arguments})
        """)


def after(name, start, values, arguments="0, x[t]"):
    """(what each thread read, what is in memory) after 64 threads did an atomic on one element."""
    kernel = kernel_of(name, arguments)
    trace = labkit.simulate(kernel, 1, len(values), values, np.array([start]), np.zeros_like(values))
    assert trace.errors == ()
    return trace.outputs[2], trace.outputs[1][0]


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=lambda d: d.__name__)
def test_threads_alternate_and_each_gets_what_was_there(name, dtype):
    if numba_types.type_of(np.dtype(dtype)) not in language.ATOMICS[name][1]:
        with pytest.raises(KernelError, match=f"`cuda.atomic.{name}` works on .*, and `there` holds {dtype.__name__}"):
            after(name, dtype(5), np.ones(64, dtype))
        return
    rng = np.random.default_rng(11)
    values = rng.integers(0 if np.dtype(dtype).kind == "u" else -30, 30, 64).astype(dtype)
    with np.errstate(all="ignore"):
        read, left = in_turn(CHANGES[name], dtype(17), values)
    got, there = after(name, dtype(17), values)
    np.testing.assert_array_equal(got, read)
    assert there == left


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_counters_wrap_at_their_limits(dtype):
    last = np.iinfo(dtype).max
    assert after("inc", dtype(last), np.full(1, last, dtype))[1] == 0
    assert after("inc", dtype(9), np.full(1, 3, dtype))[1] == 0
    assert after("inc", dtype(3), np.full(1, 3, dtype))[1] == 0
    assert after("dec", dtype(3), np.full(1, 3, dtype))[1] == 2
    assert after("dec", dtype(0), np.full(1, last, dtype))[1] == last
    assert after("dec", dtype(9), np.full(1, 3, dtype))[1] == 3
    assert after("add", dtype(last), np.full(1, 2, dtype))[1] == 1
    assert after("sub", dtype(1), np.full(1, 2, dtype))[1] == last


NOT_NUMBERS = [
    ("max", 1.0, np.nan, 1.0),
    ("max", np.nan, 1.0, np.nan),
    ("min", 1.0, np.nan, 1.0),
    ("min", np.nan, 1.0, np.nan),
    ("nanmax", 1.0, np.nan, 1.0),
    ("nanmax", np.nan, 1.0, 1.0),
    ("nanmin", 1.0, np.nan, 1.0),
    ("nanmin", np.nan, 1.0, 1.0),
    ("nanmin", np.nan, np.nan, np.nan),
]


@pytest.mark.parametrize(("name", "start", "value", "left"), NOT_NUMBERS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_not_a_number_is_left_alone_unless_the_operation_says_so(name, start, value, left, dtype):
    _, there = after(name, dtype(start), np.full(1, value, dtype))
    np.testing.assert_equal(there, dtype(left))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(("name", "start", "value", "left"), NOT_NUMBERS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_gpu_leaves_the_same(name, start, value, left, dtype):
    there = np.array([start], dtype)
    kernel_of(name, "0, x[t]")[1, 1](np.full(1, value, dtype), there, np.zeros(1, dtype))
    np.testing.assert_equal(there[0], dtype(left))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"exch"}))
def test_a_gpu_counts_as_the_simulator_does(name):
    values = np.full(64, 9, np.uint32)
    there = np.array([4], np.uint32)
    kernel_of(name, "0, x[t]")[1, 64](values, there, np.zeros_like(values))
    assert there[0] == after(name, np.uint32(4), values)[1]


@pytest.mark.parametrize("call", ["cas(there, 0, x[t], 100 + t)", "compare_and_swap(there, x[t], 100 + t)"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.__name__)
def test_one_thread_wins_a_compare_and_swap(call, dtype):
    name, arguments = call.split("(there, ")
    read, there = after(name, dtype(3), np.arange(64).astype(dtype), arguments[:-1])
    assert there == 103
    np.testing.assert_array_equal(read, np.where(np.arange(64) < 4, 3, 103))


@cuda.jit
def counts_in_two_dimensions(counts, shared_total):
    tile = cuda.shared.array((2, 4), np.int32)
    t = cuda.threadIdx.x
    if t < 8:
        tile[t // 4, t % 4] = 0
    cuda.syncthreads()
    cuda.atomic.add(tile, (t % 2, t % 3), 1)
    place = (t % 2, t % 3)
    cuda.atomic.add(counts, place, 1)
    cuda.atomic.add(counts, (-1, -1), 2)
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(shared_total, t % 4, tile[t // 4, t % 4])


def test_an_index_may_be_a_tuple():
    trace = labkit.simulate(counts_in_two_dimensions, 1, 60, np.zeros((2, 4)), np.zeros(4, np.uint64))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], [[10, 10, 10, 0], [10, 10, 10, 120]])
    np.testing.assert_array_equal(trace.outputs[1], [20, 20, 20, 0])
    assert (trace.counters.shared_atomics, trace.counters.global_atomics) == (60, 60 + 60 + 8)


def test_a_value_is_converted_to_the_arrays_dtype():
    assert after("add", np.int32(1), np.full(3, 2.9))[1] == 7
    assert after("add", np.float32(1), np.full(3, True))[1] == 4


@cuda.jit
def histogram(x, counts):
    bins = cuda.shared.array(16, np.int32)
    t = cuda.threadIdx.x
    if t < 16:
        bins[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(counts, t, bins[t])


def test_a_histogram_counts_every_value_once():
    x = np.random.default_rng(2).integers(0, 16, 5000)
    trace = labkit.simulate(histogram, 20, 256, x, np.zeros(16, np.int32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], np.bincount(x, minlength=16))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("add(there, 0)", r"write `cuda.atomic.add\(array, index, value\)`: it takes 3 arguments, not 2"),
        ("compare_and_swap(there, 0, 1, 2)", r"`cuda.atomic.compare_and_swap\(array, old, new\)`"),
        ("add(there, (0,), 1)", "a plain index here, without parentheses: `0`"),
        ("add(there, 0.5, 1)", "an index must be a whole number"),
        ("mul(there, 0, 1)", "not in the kernel language"),
        ("add(there, 0, there)", "needs one number"),
    ],
)
def test_what_an_atomic_does_not_take_is_refused_in_a_sentence(call, says):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(there):\n    cuda.atomic.{call}\n")
    with pytest.raises(KernelError, match=says):
        labkit.simulate(kernel, 1, 1, np.zeros(1, np.int32))


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("name", language.ATOMICS)
def test_atomics_take_the_dtypes_of_numba(name):
    count = {"cas": 3, "compare_and_swap": 2}.get(name, 2)
    for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64".split():
        kind = numba_types.type_of(np.dtype(dtype))
        theirs = type_in_numba(f"atomic.{name}", types.Array(kind, 1, "C"), *[types.int64] * count)
        assert theirs == (kind if kind in language.ATOMICS[name][1] else None), dtype
