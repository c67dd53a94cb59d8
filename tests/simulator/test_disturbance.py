"""Disturbed runs: what a result depends on changes with it, and everything else stays."""

import numpy as np
import pytest

from labkit import cuda, ptx, simulate
from labkit.simulator.disturbance import BARRIERS, COPIES, FENCES, PRODUCTS, SHARED_LOADS, Disturbance
from labkit.simulator.run import simulate_disturbed

X = np.arange(1, 33, dtype=np.float32)
FORMAT = ptx.FP16
WORDS = np.arange(1, 65, dtype=np.float16).view(np.uint32)


@cuda.jit
def turned(x, out):
    tile = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[31 - t] * x[t]


@cuda.jit
def turned_by_atomics(x, out):
    tile = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = cuda.atomic.add(tile, 31 - t, np.float32(0)) * x[t]


@cuda.jit
def copied(x, out):
    tile = cuda.shared.array(32, np.uint32, alignment=16)
    t = cuda.threadIdx.x
    ptx.cp_async(tile, t, x, t, 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    out[t] = tile[t]


@cuda.jit
def multiplied(x, out):
    sums = cuda.local.array(4, np.float32)
    t = cuda.threadIdx.x
    for i in range(4):
        sums[i] = 0
    ptx.mma(sums, 0, (x[t], x[t], x[t], x[t]), (x[t], x[t]), FORMAT)
    out[t] = sums[0]


@cuda.jit
def handed_over(x, out):
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x == 0:
            x[0] = 5
            cuda.threadfence()
        if cuda.atomic.add(out, 0, np.float32(1)) == 1:
            cuda.threadfence()
            out[1] = x[0]


@cuda.jit
def turned_of_two_warps(x, out):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[63 - t]


def outputs(kernel, x, out, disturbance=None, grid=1):
    if disturbance is None:
        return simulate(kernel, grid, 32, x, out).outputs[1]
    return simulate_disturbed(kernel, grid, 32, x, out, disturbance=disturbance).outputs[1]


@pytest.mark.parametrize(
    ("kernel", "what", "x", "factor"),
    [
        (turned, SHARED_LOADS, X, 4),
        (turned_by_atomics, SHARED_LOADS, X, 4),
        (turned, COPIES, X, 1),
        (turned, PRODUCTS, X, 1),
        (multiplied, PRODUCTS, WORDS, 4),
        (multiplied, SHARED_LOADS, WORDS, 1),
    ],
)
def test_results_are_scaled_as_what_they_depend_on(kernel, what, x, factor):
    out = np.zeros(32, np.float32)
    assert np.array_equal(outputs(kernel, x, out, Disturbance(what, 4.0)), factor * outputs(kernel, x, out))


@pytest.mark.parametrize("what", [COPIES, SHARED_LOADS])
def test_a_word_is_scaled_as_two_halves(what):
    out = np.zeros(32, np.uint32)
    doubled = outputs(copied, WORDS, out, Disturbance(what, 2.0))
    assert np.array_equal(doubled.view(np.float16), 2 * WORDS.view(np.float16))


def test_what_a_barrier_held_apart_is_a_race_without_it():
    out = np.zeros(64, np.float32)
    assert not simulate(turned_of_two_warps, 1, 64, np.tile(X, 2), out).errors
    trace = simulate_disturbed(turned_of_two_warps, 1, 64, np.tile(X, 2), out, disturbance=Disturbance(BARRIERS))
    assert {finding.kind for finding in trace.errors} == {"race"}


def test_what_a_fence_made_known_is_a_race_without_it():
    arguments = handed_over, 2, 32, np.zeros(1, np.float32), np.zeros(2, np.float32)
    assert not simulate(*arguments).errors
    trace = simulate_disturbed(*arguments, disturbance=Disturbance(FENCES))
    assert {finding.kind for finding in trace.errors} == {"race"}
