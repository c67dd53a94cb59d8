"""Reads that wait to be noted are there when a write comes, and cells of large arrays belong to the right element."""

import numpy as np
import pytest
from numba import float32, int32

import labkit
from labkit import cuda
from labkit.simulator import host

THREADS = 64
READS = 1


def errors(kernel, *arguments):
    return [(f.kind, f.array, f.index) for f in labkit.simulate(kernel, 3, THREADS, *arguments).errors]


def zeros():
    return np.zeros(3 * THREADS, np.float32)


@cuda.jit
def overwritten(out):
    """The neighbour's element is read, READS times, and then written with no barrier between."""
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    total = float32(0)
    for _ in range(READS):
        total += s[(t + 33) % THREADS]
    s[t] = total
    out[cuda.grid(1)] = total


@cuda.jit
def awaited(out):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    total = s[(t + 33) % THREADS]
    cuda.syncthreads()
    s[t] = total
    out[cuda.grid(1)] = s[t]


@cuda.jit
def incremented(out):
    """An element is read and then changed by an atomic, with no barrier between."""
    s = cuda.shared.array(THREADS, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[cuda.grid(1)] = s[(t + 33) % THREADS]
    cuda.atomic.add(s, t, 1)


@cuda.jit
def half_filled(out):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    if t < 40:
        s[t] = t
    cuda.syncthreads()
    out[cuda.grid(1)] = s[t]


@cuda.jit
def half_read(out):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    if t < 40:
        s[t] = t
    cuda.syncthreads()
    out[cuda.grid(1)] = s[t % 40]


@pytest.mark.parametrize("reads", [1, 63, 64, 65, 200])
def test_a_read_that_waits_races_with_the_write_after_it(reads):
    found = errors(labkit.specialise(overwritten, READS=reads), zeros())
    assert [(kind, array) for kind, array, _ in found] == [("race", "s")]


def test_an_atomic_is_a_write_too():
    assert [kind for kind, _, _ in errors(incremented, zeros())] == ["race"]


def test_a_barrier_ends_the_wait():
    assert not errors(awaited, zeros())


def test_only_what_was_written_may_be_read_behind_a_barrier():
    assert errors(half_filled, zeros()) == [("uninitialised", "s", (40,))]
    assert not errors(half_read, zeros())


def test_a_race_far_into_a_large_array_names_its_element():
    @cuda.jit
    def far(out, place):
        out[place[cuda.threadIdx.x % place.size]] = cuda.threadIdx.x

    places = np.array([999_999, 3, 123_456])
    assert errors(far, np.zeros(1_000_000, np.float32), places)[0][2] in {(999_999,), (3,), (123_456,)}
    assert errors(far, host.to_device(np.zeros(1_000_000, np.float32))[::-1], places[:1])[0][2] == (999_999,)
