"""What later operations change or take: the load of an operand, what becomes of the sums, and the ring."""

from typing import NamedTuple

import numpy as np
import pytest

from labkit import cuda, ptx, simulate, specialise
from labkit.arrays.views import as_words
from labkit.forecast import sass
from labkit.formats import BF16
from labkit.gemm.library.constants import BK, NUM_ACC
from labkit.gemm.library.epilogue import thread_origin
from labkit.gemm.library.launches import launches
from labkit.gemm.library.tilings import Tiling
from labkit.parts.ring import acquire_stage, init_ring, next_stage

TAPS = 3


class Signal(NamedTuple):
    """A signal of rows x channels, and how many steps along k its channels take."""

    map: ptx.TensorMap
    steps: int


@cuda.jit(device=True)
def load_taps(tiles, stage, signal, batch, first, step, full):
    """k runs over taps, and for each over all channels: of tap t the rows lie t further on."""
    tap, step = step // signal.steps, step % signal.steps
    ptx.tma_load(tiles, (stage, 0, 0, 0), signal.map, (batch, first + tap, step * BK), full, stage)


class Normalised(NamedTuple):
    """Where results go, and what each column is multiplied by and moved by."""

    map: ptx.TensorMap
    array: object
    rows: int
    cols: int
    scale: object
    shift: object


@cuda.jit(device=True)
def normalise(sums, place, output):
    """max(scale * sum + shift, 0)"""
    _, left = thread_origin(place)
    for n in range(NUM_ACC):
        col = left + n // 4 * 8 + n % 2
        if col < output.cols:
            sums[n] = max(sums[n] * output.scale[col] + output.shift[col], np.float32(0))


def a_convolution():
    """A launch in which both are replaced: a convolution of a signal with weights of three taps, and its result."""
    rng = np.random.default_rng(0)
    signal, weights = rng.standard_normal((202, 128)), rng.standard_normal((72, TAPS * 128))
    scale, shift = rng.standard_normal((2, 72)).astype(np.float32)
    X, W = BF16.encode(signal), BF16.encode(weights)
    P = len(X) - TAPS + 1
    C = np.zeros((P, 72), np.uint16)
    unfolded = np.concatenate([X[tap : tap + P] for tap in range(TAPS)], axis=1)
    (one,) = launches(unfolded, W, C, Tiling(64, 72, 3))
    _, right, tiles, output, parts = one.arguments
    left = Signal(ptx.TensorMap(as_words(X[None]), (1, 64, BK)), 128 * 2 // 128)
    arguments = left, right, tiles, Normalised(*output[:4], scale, shift), parts
    expected = BF16.decode(unfolded) @ BF16.decode(W).T * scale + shift
    return one, specialise(one.kernel, load_left=load_taps, blend=normalise), arguments, np.maximum(expected, 0)


def test_a_convolution_replaces_the_load_and_what_becomes_of_the_sums():
    one, kernel, arguments, expected = a_convolution()
    trace = simulate(kernel, 2, one.block, *arguments, shared_bytes=one.shared_bytes)
    assert trace.errors == ()
    found = BF16.decode(np.asarray(trace.outputs[3].array).reshape(-1).view(np.uint16).reshape(expected.shape))
    assert np.linalg.norm(found - expected) < 2.0**-9 * np.linalg.norm(expected)


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_a_kernel_with_other_functions_assembles_without_spills():
    one, kernel, (*arguments, _), _ = a_convolution()
    parts = type(one.arguments[-1])(np.zeros((1, 1, 1, 1), np.float32), np.zeros(1, np.uint32))
    code = sass.compiled(kernel, *arguments, parts, compute_capability=(9, 0, "a"))
    assert (code.registers, code.spill_bytes) == (168, 0)


STAGES = 3


@cuda.jit
def column_sums(X_map, out, steps):
    """A kernel of its own that takes the ring: warp 0 fetches eight rows a step, and warp 1 adds them up."""
    tiles = ptx.shared_array(0, (STAGES, 8, 32), np.float32)
    full, empty = cuda.shared.array(STAGES, np.uint64), cuda.shared.array(STAGES, np.uint64)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    if warp == 0 and lane == 0:
        init_ring(full, empty, STAGES, 1)
    cuda.syncthreads()
    stage, parity = 0, 0
    if warp == 0:
        if lane == 0:
            for step in range(steps):
                acquire_stage(full, empty, stage, parity, 8 * 32 * 4)
                ptx.tma_load(tiles, (stage, 0, 0), X_map, (step * 8, 0), full, stage)
                stage, parity = next_stage(stage, parity, STAGES)
    else:
        total = np.float32(0)
        for _ in range(steps):
            ptx.mbarrier_wait(full, stage, parity)
            for y in range(8):
                total += tiles[stage, y, (lane // 4 ^ y) * 4 + lane % 4]
            cuda.syncwarp()
            if lane == 0:
                ptx.mbarrier_arrive(empty, stage)
            stage, parity = next_stage(stage, parity, STAGES)
        out[lane] = total


def test_another_kernel_takes_the_ring():
    X = np.random.default_rng(0).standard_normal((80, 32)).astype(np.float32)
    X_map, out = ptx.TensorMap(X, (8, 32)), np.zeros(32, np.float32)
    trace = simulate(column_sums, 1, (32, 2), X_map, out, 10, shared_bytes=STAGES * 8 * 128)
    assert trace.errors == ()
    assert np.allclose(trace.outputs[1], X.sum(0), atol=1e-4)
