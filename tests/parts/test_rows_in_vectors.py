"""Parts that load and store neighbours: the elements, the bytes of an access, and the end of a row."""

import numpy as np
import pytest

from labkit import cuda, ptx, simulate, specialise
from labkit.formats import BF16, FP32
from labkit.parts.fours import load_four_or_zeros, load_row_four, store_four_within, store_row_four
from labkit.parts.vector_widths import specialise_alignment, specialise_type_and_alignment, vector_element, word_view
from labkit.parts.vectors import copy_async, load, load_raw, load_shared, store, store_shared, unpack

WIDTH, ELEMENT, COLUMNS = 4, np.float32, 64
WORD = np.float32 if ELEMENT is np.float32 else np.uint32
KEPT = 2 * COLUMNS // (2 if ELEMENT is np.uint32 else 1)  # elements of two rows
ACCESSES = [(FP32, 4, 16), (FP32, 1, 4), (BF16, 8, 16), (BF16, 4, 8), (BF16, 1, 2)]  # format, WIDTH, bytes


@cuda.jit
def through_registers(x, y):
    own = cuda.local.array((2, WIDTH), np.float32)
    i = np.uint32(WIDTH * cuda.threadIdx.x)
    for row in range(2):
        load(x, row, i, own[row])
    for row in range(2):
        store(y, row, i, own[row])


@cuda.jit
def through_shared(x, y):
    kept = cuda.shared.array(KEPT, ELEMENT, alignment=16)
    own = cuda.local.array(WIDTH, np.float32)
    i = np.uint32(WIDTH * cuda.threadIdx.x)
    copy_async(kept, i, x, 0, i)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    load_shared(kept, i, own)
    store(y, 0, i, own)
    load(x, 1, i, own)
    store_shared(kept, COLUMNS + i, own)
    load_shared(kept, COLUMNS + i, own)
    store(y, 1, i, own)


@cuda.jit
def as_memory_holds_it(x, y):
    raw = cuda.local.array((2, 4), WORD)
    own = cuda.local.array(WIDTH, np.float32)
    i = np.uint32(WIDTH * cuda.threadIdx.x)
    for row in range(2):
        load_raw(x, row, i, raw[row])
        unpack(raw[row], own)
        store(y, row, i, own)


@cuda.jit
def four_by_four(x, y):
    i = 4 * cuda.threadIdx.x
    if i < x.shape[1]:
        for row in range(2):
            a, b, c, d = load_row_four(x, row, i)
            store_row_four(y, row, i, a, b, c, d)


@cuda.jit
def with_zeros(x, y, loaded):
    i = 4 * cuda.threadIdx.x
    for row in range(2):
        a, b, c, d = load_four_or_zeros(x, row, i)
        loaded[row, i], loaded[row, i + 1], loaded[row, i + 2], loaded[row, i + 3] = a, b, c, d
        store_four_within(y, row, i, a, b, c, d)


def numbers(format, columns):
    """Two rows in a format."""
    return format.encode(np.random.default_rng(columns).standard_normal((2, columns)))


@pytest.mark.parametrize("kernel", [through_registers, through_shared, as_memory_holds_it], ids=lambda k: k.__name__)
@pytest.mark.parametrize(("format", "width", "access_bytes"), ACCESSES)
def test_vectors_arrive_whole_by_accesses_of_their_bytes(kernel, format, width, access_bytes):
    element = vector_element(format.dtype, width)
    x = numbers(format, COLUMNS)
    rows, y = (X.view(element) for X in (x, np.zeros_like(x)))
    trace = simulate(specialise(kernel, WIDTH=width, ELEMENT=element), 1, COLUMNS // width, rows, y)
    assert not trace.errors
    np.testing.assert_array_equal(trace.outputs[1].view(x.dtype), x)
    loads = [c.site for c in trace.sites if c.site.space == "global"]
    assert {site.elements * element().itemsize for site in loads} == {access_bytes}


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("columns", [64, 62, 61, 5, 1])
def test_four_values_stop_at_the_end_of_a_row(format, columns):
    x = numbers(format, columns)
    trace = simulate(specialise_type_and_alignment(four_by_four, x), 1, 16, x, np.zeros_like(x))
    assert not trace.errors
    np.testing.assert_array_equal(trace.outputs[1], x)
    assert {c.site.elements for c in trace.sites} == {4 if columns == 64 else 1}


@pytest.mark.parametrize("columns", [60, 62, 1])
def test_past_the_end_of_a_row_are_zeros(columns):
    x = numbers(FP32, columns)
    kernel = specialise_alignment(with_zeros, aligned=columns % 4 == 0)
    trace = simulate(kernel, 1, 16, x, np.zeros_like(x), np.ones((2, 64), np.float32))
    assert not trace.errors
    np.testing.assert_array_equal(trace.outputs[1], x)
    np.testing.assert_array_equal(trace.outputs[2], np.pad(x, ((0, 0), (0, 64 - columns))))


def test_kernels_see_eight_bfloat16_as_words():
    x = numbers(BF16, 64)
    assert word_view(x, 8).dtype == np.uint32 and word_view(x, 1).dtype == np.uint16
