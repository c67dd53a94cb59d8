"""A playground traces loops through a CPU's caches, as it simulates kernels."""

import numpy as np
import pytest

from labkit.loops import SMALL_CPU
from labkit.views import cache, playground

TILE = 4


def summed(X, total):
    for start in range(0, X.size, TILE):
        for i in range(start, min(start + TILE, X.size)):
            total[0] += X[i]


def numbers(N):
    return np.ones(N, np.float32), np.zeros(1, np.float32)


@pytest.fixture
def shown():
    return playground(
        summed,
        numbers,
        view=lambda run: cache(run, cpu=SMALL_CPU),
        cpu=SMALL_CPU,
        TILE=[2, 4, 8],
        N=[32, 64, 128],
    )


def test_a_slider_traces_the_loop_again(shown):
    counters = {label: value for label, value, _ in shown.data["counters"]}
    assert counters["served by DRAM"] == "5" and counters["FLOPs"] == "64"
    shown.move(N=128)
    assert shown.trace.counters.flops == 128
    assert shown.trace.outputs[1][0] == 128


def test_a_loop_that_cannot_be_traced_says_so_in_the_view():
    def broken(X, total):
        total[0] = X.sum()

    view = playground(broken, numbers, cpu=SMALL_CPU, N=[8, 16])
    assert "hides a loop" in view.data["error"]
