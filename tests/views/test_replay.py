"""Loads through a cache, against what a person works out by hand."""

from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.loops.loop_trace import LoopCounters, LoopSamples, LoopSite, LoopTrace
from labkit.machine.gpus import GPUS, CacheLevel
from labkit.simulator.caches import make_l1, set_index
from labkit.trace import ArrayInfo, Site
from labkit.views.replay import replay_launch, replay_loop
from tests.views.made import trace

ROW = {"A": ((4, 32), 0)}


def test_a_unit_stride_warp_misses_four_sectors_then_hits():
    run = replay_launch(trace([(1, "A", range(32)), (1, "A", range(32))], ROW))
    assert run.asked == 8
    assert run.misses == 4
    assert run.hit_rate == 0.5
    assert run.moves.tolist() == [[0, sector, 1] for sector in range(4)]


def test_lanes_that_share_a_sector_ask_for_it_once():
    run = replay_launch(trace([(1, "A", [0, 1, 0, 2])], ROW))
    assert run.asked == 1


def test_a_full_cache_pushes_out_the_whole_oldest_line():
    """Seventeen lines of one set meet 16 ways."""
    shared_bytes, line = 228 * 1024, 32  # floats
    l1 = make_l1(GPUS["H100 SXM"], 32, shared_bytes, 1)
    lines = [number for number in range(1000) if set_index(l1, number) == set_index(l1, 0)][:17]
    walk = [(1, "A", [0, 8]), *((1, "A", [number * line]) for number in lines[1:]), (1, "A", [8])]
    run = replay_launch(trace(walk, {"A": ((1000, line), 0)}, shared_bytes=shared_bytes))
    assert run.moves[:2].tolist() == [[0, 0, 1], [0, 1, 1]]
    assert run.moves[17:20].tolist() == [[16, 0, 0], [16, 1, 0], [16, 4 * lines[16], 1]]
    assert run.moves[20:].tolist() == [[17, 4 * lines[1], 0], [17, 1, 1]]


@cuda.jit
def gather(places, x, y, out):
    i = cuda.grid(1)
    total = np.float32(0)
    for step in range(places.shape[1]):
        place = places[i, step]
        total += x[place] if place % 3 else y[place]
    out[i] = total


@pytest.mark.parametrize("seed", range(40))
def test_every_launch_misses_as_often_as_its_trace(seed):
    """Random gathers by whole grids of recorded blocks, several to an SM, into caches that overflow."""
    rng = np.random.default_rng(seed)
    few = replace(GPUS["V100"], sms=int(rng.integers(1, 5)), l1_bytes=int(rng.integers(16, 40)) * 1024)
    name = f"few {seed}"
    blocks, block, size = int(rng.integers(1, 9)), int(rng.integers(1, 80)), int(rng.integers(1, 40_000))
    pitch = int(rng.choice([1, 8, 512]))
    places = rng.integers(0, size, (blocks * block, 12)) // pitch * pitch
    x = np.ones(size, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(GPUS, name, replace(few, name=name))
        run = labkit.simulate(
            gather, blocks, block, places, x, x, np.zeros(blocks * block, np.float32),
            gpu=name, record=[(b, 0, 0) for b in range(blocks)],
        )  # fmt: skip
        replayed = replay_launch(run)
    counted = run.counters
    assert replayed.asked == counted.global_load_sectors
    assert replayed.asked - replayed.misses == counted.l1_hits


@cuda.jit
def down_a_column(A, out):
    i = cuda.grid(1)
    for k in range(8):
        out[i] += A[i, k]


def test_rows_far_apart_share_a_set_of_sixteen_ways():
    A = np.ones((8, 16384), np.float32)
    run = labkit.simulate(down_a_column, 1, 8, A, np.zeros(8, np.float32))
    replayed = replay_launch(run)
    assert replayed.asked - replayed.misses == run.counters.l1_hits >= 56


@cuda.jit
def same(x, out):
    out[cuda.grid(1)] = x[cuda.threadIdx.x]


def test_blocks_on_two_sms_have_an_l1_each():
    x = np.arange(32, dtype=np.float32)
    run = labkit.simulate(same, 2, 32, x, np.zeros(64, np.float32), record=((0, 0, 0), (1, 0, 0)))
    assert run.counters.l1_hits == 0
    assert replay_launch(run).misses == 8


def test_sectors_are_counted_from_byte_0():
    arrays = {"A": ((8,), 0), "B": ((8,), 4096)}
    run = replay_launch(trace([(1, "A", [0]), (2, "B", [7])], arrays))
    assert [info.name for info in run.arrays] == ["A", "B"]
    assert run.moves.tolist() == [[0, 0, 1], [1, 4096 // 32, 1]]
    assert run.line.tolist() == [1, 2]


def test_what_does_not_fit_is_left_out_and_said():
    run = replay_launch(trace([(1, "A", [0])] * 5, ROW), steps=3)
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
        outputs=(), arrays=(ArrayInfo("A", "global", (32,), "float32", 4, (4,)),), sites=sites,
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
    assert run.moves.tolist() == [[0, 0, 1], [1, 1, 1]]
    assert run.line.tolist() == [1, 2]


def test_stores_of_a_launch_pass_l1_by():
    loads = trace([(1, "A", range(32)), (2, "A", range(32))], ROW)
    load, store = loads.sites
    stores = replace(loads, sites=(load, replace(store, site=replace(store.site, kind="store"))))
    assert replay_launch(stores).line.tolist() == [1]


@cuda.jit
def past_l1(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] + cuda.ldcg(y, i)
    if i > 99:
        out[i] = y[i]  # does not run


def test_loads_that_bypass_l1_are_left_out():
    x = np.ones(32, np.float32)
    run = labkit.simulate(past_l1, 1, 32, x, x.copy(), np.zeros(32, np.float32))
    assert [info.name for info in replay_launch(run).arrays] == ["x"]
