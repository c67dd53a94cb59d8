"""Counters of single blocks: threads that take part, and elements that go from one thread to another."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.checking.budget import ACTIVE_THREADS, EXCHANGED, FILLING_THREADS, LOADING_THREADS, read_counter

SIZE = 70  # so that the last of two blocks has 6 elements


@cuda.jit
def neighbours(x, y):
    tile = cuda.shared.array(64, np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t] = x[i] if i < x.size else np.float32(0)
    cuda.syncthreads()
    if i < x.size:
        y[i] = tile[t ^ 1]


@cuda.jit
def own_places(x, y):
    tile = cuda.shared.array(64, np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < x.size:
        tile[t] = x[i]
        y[i] = tile[t]


@cuda.jit
def one_thread_loads(x, y):
    tile = cuda.shared.array(64, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 64
    if t == 0:
        for i in range(first, min(first + 64, x.size)):
            tile[i - first] = x[i]
    cuda.syncthreads()
    if first + t < x.size:
        y[first + t] = tile[t]


@cuda.jit
def copies(x, y):
    tile = cuda.shared.array(64, np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    ptx.cp_async(tile, t, x, i, 4, 4 if i < x.size else 0)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    if i < x.size:
        y[i] = tile[t ^ 1]


@pytest.mark.parametrize(
    ("kernel", "active", "loading", "filling", "exchanged"),
    [
        (neighbours, 6, 6, 64, 6),
        (own_places, 6, 6, 6, 0),
        (one_thread_loads, 6, 1, 1, 5),
        (copies, 6, 6, 64, 6),
    ],
)
def test_what_the_threads_of_the_emptiest_block_do(kernel, active, loading, filling, exchanged):
    x = np.arange(SIZE, dtype=np.float32)
    trace = labkit.simulate(kernel, 2, 64, x, np.zeros_like(x), record=((0, 0, 0), (1, 0, 0)))
    counters = ACTIVE_THREADS, LOADING_THREADS, FILLING_THREADS, EXCHANGED
    assert [read_counter(counter, trace) for counter in counters] == [active, loading, filling, exchanged]


@cuda.jit
def vectors(x, y):
    tile = cuda.shared.array(64, np.float32, alignment=16)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    if t < 16:
        a, b, c, d = ptx.load4(tile, 4 * t)
        ptx.store4(y, 4 * t, a, b, c, d)


def test_each_element_of_a_vector_counts():
    x = np.arange(64, dtype=np.float32)
    trace = labkit.simulate(vectors, 1, 64, x, np.zeros_like(x))
    assert read_counter(EXCHANGED, trace) == 63  # thread 0 stored the first of its own vector


@cuda.jit
def first_block_idle(x, y):
    i = cuda.grid(1)
    if 64 <= i < x.size:
        y[i] = x[i]
        if i == 64:
            for j in range(64):
                y[j] = x[j]


def test_no_block_leaves_its_work_to_another():
    x = np.arange(SIZE, dtype=np.float32)
    trace = labkit.simulate(first_block_idle, 2, 64, x, np.zeros_like(x), record=((0, 0, 0), (1, 0, 0)))
    assert read_counter(ACTIVE_THREADS, trace) == 0
