"""Lanes that take part in each instruction, held against the simulator's counters."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.views import divergence
from labkit.views.base import unpack


@cuda.jit
def lanes_disagree(a, b, out):
    i = cuda.grid(1)
    if i % 2 == 0:
        out[i] = a[i]
    else:
        out[i] = b[i]


@cuda.jit
def warps_disagree(a, b, out):
    i = cuda.grid(1)
    if (i // 32) % 2 == 0:
        out[i] = a[i]
    else:
        out[i] = b[i]


@cuda.jit
def guarded(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


@cuda.jit
def with_a_barrier(x, out):
    i = cuda.grid(1)
    v = x[i]
    cuda.syncthreads()
    out[i] = v


def run(kernel, threads=64):
    a, b = np.ones((2, threads), np.float32)
    return labkit.simulate(kernel, 1, threads, a, b, a * 0)


@pytest.fixture(scope="module")
def both():
    return {kernel.__name__: run(kernel) for kernel in (lanes_disagree, warps_disagree)}


def test_a_warp_whose_lanes_disagree_takes_twice_the_instructions(both):
    view = divergence(both)
    assert view.data["steps"] == [(warp, done) for warp in (0, 1) for done in (1, 2, 3, 4)]
    assert view.data["stats"]["values"][3] == [4, 64, 2, 0]
    assert view.data["say"][0] == (
        "Warp 0, instruction 1. lanes_disagree: 16 lanes take part, 16 idle; warps_disagree: 32 lanes take part."
    )
    assert view.data["say"][3].endswith("warps_disagree has **finished after 2**.")


def test_instructions_and_lanes_are_those_that_the_simulator_counted(both):
    for side, trace in zip(divergence(both).data["sides"], both.values(), strict=True):
        counted = trace.counters
        masks = np.concatenate([unpack(lanes) for lanes in side["lanes"]])
        assert len(masks) == counted.global_load_requests + counted.global_store_requests
        assert masks.sum() == counted.global_loads + counted.global_stores


def test_a_guard_idles_the_last_warp_alone():
    x = np.ones(40, np.float32)
    view = divergence({"guarded": labkit.simulate(guarded, 1, 64, x, x * 0)})
    assert [values[1] for values in view.data["stats"]["values"]] == [0, 0, 24, 48]


def test_the_still_picture(both, tmp_path):
    divergence(both).save_png(tmp_path / "lanes.png", step=3)
    assert (tmp_path / "lanes.png").stat().st_size > 5000


def test_blocks_of_other_sizes_are_refused(both):
    with pytest.raises(ValueError, match="blocks of one size, not of 2 and 4 warps"):
        divergence({"two": both["lanes_disagree"], "four": run(lanes_disagree, 128)})


def test_a_barrier_is_no_load_or_store():
    x = np.ones(32, np.float32)
    (side,) = divergence({"run": labkit.simulate(with_a_barrier, 1, 32, x, x.copy())}).data["sides"]
    assert [text.split(": ")[1] for text in side["texts"][0]] == ["load x[i]", "store out[i]"]
