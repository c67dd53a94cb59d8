"""Loads through a cache, against what a person works out by hand."""

import numpy as np

from labkit.simulator.caches import make_cache
from labkit.views.replay import replay
from tests.views.made import trace

ROW = {"A": ((4, 32), 0)}


def test_a_unit_stride_warp_misses_four_sectors_then_hits():
    run = replay(trace([(1, "A", range(32)), (1, "A", range(32))], ROW), make_cache(4096, 4))
    assert run.sector_reads == 8
    assert run.misses == 4
    assert run.hit_rate == 0.5
    assert run.moves.tolist() == [[0, 0, sector, 1] for sector in range(4)]


def test_lanes_that_share_a_sector_ask_for_it_once():
    run = replay(trace([(1, "A", [0, 1, 0, 2])], ROW), make_cache(4096, 4))
    assert run.sector_reads == 1


def test_a_full_cache_pushes_out_the_whole_oldest_line():
    one_line = make_cache(128, 1)
    run = replay(trace([(1, "A", range(16)), (1, "A", [32]), (1, "A", [0])], ROW), one_line)
    assert run.moves.tolist() == [
        [0, 0, 0, 1], [0, 0, 1, 1],
        [1, 0, 0, 0], [1, 0, 1, 0], [1, 0, 4, 1],
        [2, 0, 4, 0], [2, 0, 0, 1],
    ]  # fmt: skip


def test_sectors_are_counted_from_the_first_of_their_array():
    arrays = {"A": ((8,), 0), "B": ((8,), 4096)}
    run = replay(trace([(1, "A", [0]), (2, "B", [7])], arrays), make_cache(4096, 4))
    assert [info.name for info in run.arrays] == ["A", "B"]
    assert run.moves.tolist() == [[0, 0, 0, 1], [1, 1, 0, 1]]
    assert run.line.tolist() == [1, 2]


def test_what_does_not_fit_is_left_out_and_said():
    run = replay(trace([(1, "A", [0])] * 5, ROW), make_cache(4096, 4), steps=3)
    assert len(run.elements) == 3
    assert run.left_out == 2
    assert np.all(run.array == 0)


def test_a_cpu_cache_moves_whole_lines():
    run = replay(trace([(1, "A", [i]) for i in range(32)], ROW), make_cache(1024, 2, 64, 64), sector_bytes=64)
    assert run.misses == 2
    assert run.hit_rate == 1 - 2 / 32
