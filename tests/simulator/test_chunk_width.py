"""Counters say what the kernel asks for, however the simulator cuts the grid into chunks."""

import pytest

from labkit import simulate
from labkit.bench.counters.kernels import copies, histograms, products, reductions, stencils, transposes, vectors
from labkit.simulator import launch

FAMILIES = (copies, histograms, products, reductions, stencils, transposes, vectors)
CHOSEN = (
    "gather, scatter, copy with stride 8, histogram_shared, dot, sum_interleaved, stencil_2d, exchange4 with step 2"
)
LAUNCHES = {one.title: one for family in reversed(FAMILIES) for one in reversed(family.LAUNCHES)}


@pytest.mark.parametrize("title", CHOSEN.split(", "))
def test_counters_do_not_change_with_the_chunk_width(title, monkeypatch):
    one = LAUNCHES[title]
    found = []
    for lanes in (1_024, 262_144):
        monkeypatch.setattr(launch, "CHUNK_LANES", lanes)
        trace = simulate(one.kernel, one.grid, one.block, *one.arguments())
        found.append((trace.counters, trace.sites))
    assert found[0] == found[1]
