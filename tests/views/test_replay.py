"""Loads through a cache, against what a person works out by hand."""

from dataclasses import replace

import numpy as np

from labkit.gpus import CacheLevel
from labkit.loops.loop_trace import LoopCounters, LoopSamples, LoopSite, LoopTrace
from labkit.trace import ArrayInfo, Site
from labkit.views.replay import replay_launch, replay_loop
from tests.views.made import trace

ROW = {"A": ((4, 32), 0)}


def test_a_unit_stride_warp_misses_four_sectors_then_hits():
    run = replay_launch(trace([(1, "A", range(32)), (1, "A", range(32))], ROW), 4096)
    assert run.asked == 8
    assert run.misses == 4
    assert run.hit_rate == 0.5
    assert run.moves.tolist() == [[0, 0, sector, 1] for sector in range(4)]


def test_lanes_that_share_a_sector_ask_for_it_once():
    run = replay_launch(trace([(1, "A", [0, 1, 0, 2])], ROW), 4096)
    assert run.asked == 1


def test_a_full_cache_pushes_out_the_whole_oldest_line():
    one_line = 128
    run = replay_launch(trace([(1, "A", range(16)), (1, "A", [32]), (1, "A", [0])], ROW), one_line, ways=1)
    assert run.moves.tolist() == [
        [0, 0, 0, 1], [0, 0, 1, 1],
        [1, 0, 0, 0], [1, 0, 1, 0], [1, 0, 4, 1],
        [2, 0, 4, 0], [2, 0, 0, 1],
    ]  # fmt: skip


def test_sectors_are_counted_from_the_first_of_their_array():
    arrays = {"A": ((8,), 0), "B": ((8,), 4096)}
    run = replay_launch(trace([(1, "A", [0]), (2, "B", [7])], arrays), 4096)
    assert [info.name for info in run.arrays] == ["A", "B"]
    assert run.moves.tolist() == [[0, 0, 0, 1], [1, 1, 0, 1]]
    assert run.line.tolist() == [1, 2]


def test_what_does_not_fit_is_left_out_and_said():
    run = replay_launch(trace([(1, "A", [0])] * 5, ROW), 4096, steps=3)
    assert len(run.elements) == 3
    assert run.left_out == 2
    assert np.all(run.array == 0)


def loop_trace(indices, stores=0):
    """Accesses to one array of 32 floats; the last `stores` of them are stores in another line."""
    sites = tuple(
        LoopSite(Site(line, 4, "A", kind, "global", "float32", "A[i]"), (0, 0))
        for line, kind in ((1, "load"), (2, "store"))
    )
    count = len(indices)
    site = np.repeat([0, 1], [count - stores, stores])
    return LoopTrace(
        kernel="walk", source="", filename="walk.py", first_line=1, cpu="Core i7-6700", levels=("L1", "DRAM"),
        outputs=(), arrays=(ArrayInfo("A", "global", (32,), "float32", 4),), sites=sites,
        counters=LoopCounters(count - stores, stores, (0, count), 0, 0, 0), findings=(), elements={},
        samples=LoopSamples(site, np.array(indices), np.zeros(count, int)), complete=True,
    )  # fmt: skip


def test_a_cpu_cache_moves_whole_lines():
    run = replay_loop(loop_trace(range(32)), CacheLevel("L1", 1024, 2, 4))
    assert run.misses == 2
    assert run.hit_rate == 1 - 2 / 32
    assert run.piece_bytes == 64
    assert run.cache == "1 KB L1"


def test_a_store_of_a_loop_brings_its_line_in():
    run = replay_loop(loop_trace([0, 16], stores=1), CacheLevel("L1", 1024, 2, 4))
    assert run.moves.tolist() == [[0, 0, 0, 1], [1, 0, 1, 1]]
    assert run.line.tolist() == [1, 2]


def test_stores_of_a_launch_pass_l1_by():
    loads = trace([(1, "A", range(32)), (2, "A", range(32))], ROW)
    load, store = loads.sites
    stores = replace(loads, sites=(load, replace(store, site=replace(store.site, kind="store"))))
    assert replay_launch(stores, 4096).line.tolist() == [1]
