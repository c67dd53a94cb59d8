"""Kernels that touch an array under another name: a device function's parameter, a second name of an argument."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.forecast.roofline import time_bound
from labkit.views import banks, cache, findings, memory, playground, roofline, tiling


@cuda.jit(device=True)
def put(destination, source, i):
    destination[i] = source[i] + source[i]


@cuda.jit
def through_a_function(x, out):
    held = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    held[i] = x[cuda.grid(1)]
    cuda.syncthreads()
    put(out, held, i)


@cuda.jit
def by_a_second_name(x, out):
    i = cuda.grid(1)
    o = out
    o[i] += x[i]


def launch(n=64):
    return 2, 32, np.ones(n, np.float32), np.zeros(n, np.float32)


@pytest.mark.parametrize("kernel", [through_a_function, by_a_second_name])
@pytest.mark.parametrize("view", [tiling, memory, cache, findings, lambda run: roofline({"it": run})])
def test_every_view_finds_the_arrays(kernel, view, tmp_path):
    shown = view(labkit.simulate(kernel, *launch()))
    shown.save_png(tmp_path / "view.png")
    assert shown.sentence and shown.to_html()


def test_banks_meet_in_a_function_too():
    assert "held[32]" in banks(labkit.simulate(through_a_function, *launch()), array="held").data["sides"][0]["label"]


@pytest.mark.parametrize("kernel", [through_a_function, by_a_second_name])
def test_bounds_and_playgrounds_know_them(kernel):
    assert time_bound(labkit.simulate(kernel, *launch())).time_ms > 0
    assert playground(kernel, launch, n=[64]).data["error"] is None
