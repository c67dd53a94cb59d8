"""Blocks over a matrix, held against the threads that store an output."""

import numpy as np
import pytest

import labkit
from labkit import cuda, gemm
from labkit.views import ragged

TILED = gemm.step("fp32", "tiled")


def run(M, N):
    return labkit.simulate(TILED.kernel, *TILED.geometry(M, N), *gemm.Problem(M, N, 16).operands())


@pytest.fixture(scope="module")
def runs():
    return {f"{M} x {N}": run(M, N) for M, N in ((16, 32), (17, 30), (33, 16))}


def test_threads_with_an_output_are_those_that_store_one(runs):
    view = ragged(runs, "C")
    for trace, (threads, outputs, share) in zip(runs.values(), view.data["stats"]["values"], strict=True):
        assert threads == np.prod(trace.grid) * np.prod(trace.block)
        assert outputs == trace.counters.global_stores
        assert share == f"{outputs / threads:.0%}"


def test_the_sentence_tells_the_threads_outside(runs):
    full, ragged_run, _ = ragged(runs, "C").data["say"]
    assert full == "C of 16 x 32: **100%** of the threads have an output. No thread is outside of C."
    assert ragged_run.endswith("**50%** of the threads have an output. 514 of 1,024 threads are outside of C.")


def test_rows_come_before_columns(runs):
    assert ragged(runs, "C").data["launches"][2] == {"size": [33, 16], "grid": (3, 1), "block": (16, 16)}


def test_the_run_that_starts_is_the_one_of_the_still_picture(runs, tmp_path):
    view = ragged(runs, "C", start="33 x 16")
    assert view.sentence.startswith("C of 33 x 16")
    view.save_png(tmp_path / "ragged.png")
    assert (tmp_path / "ragged.png").stat().st_size > 5000


@cuda.jit
def deep(x):
    x[cuda.threadIdx.z, 0] = 1


def test_what_cannot_be_shown_is_refused(runs):
    with pytest.raises(ValueError, match="give one"):
        ragged({}, "C")
    with pytest.raises(ValueError, match="no matrix 'D': choose one of A, B, C"):
        ragged(runs, "D")
    with pytest.raises(ValueError, match="no run '1 x 1'"):
        ragged(runs, "C", start="1 x 1")
    with pytest.raises(TypeError, match="ragged takes a trace"):
        ragged({"": None}, "C")
    with pytest.raises(ValueError, match="was launched in 3D"):
        ragged({"": labkit.simulate(deep, 1, (1, 1, 2), np.zeros((2, 1), np.float32))}, "x")
