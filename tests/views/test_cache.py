"""The cache view: what it says, what it sends, and its pictures."""

import numpy as np
import pytest

import labkit
from labkit import loops
from labkit.machine.gpus import CacheLevel, Cpu
from labkit.trace import Counters
from labkit.views.base import unpack
from labkit.views.cache import cache, hit_rates
from tests.views.made import trace
from tests.views.test_replay import loop_trace, same

TINY = Cpu("tiny", 1, 1.0, (CacheLevel("L1", 128, 1, 4),), 10.0, {"float32": 32.0}, "")
ROW = {"A": ((4, 32), 0)}


def test_a_loops_sentences_name_the_element_and_the_line_that_comes_in():
    view = cache(loop_trace([0, 1, 16]), cpu=TINY)
    assert view.data["say"][0] == (
        "Access 1, line 1: `A[0]` was **not in the cache**: its line of 64 bytes comes in, `A[0]` to `A[15]`."
    )
    assert view.data["say"][1] == "Access 2, line 1: `A[1]` was in the cache."
    assert "A[16]` to `A[31]`" in view.data["say"][2]


def test_a_warps_sentences_count_sectors():
    view = cache(trace([(3, "A", range(32)), (3, "A", range(32))], ROW))
    assert view.data["say"][0].startswith(
        "Load 1, line 3: warp 0 reads 32 elements of `A` in 4 sectors; **4 sectors of 4"
    )
    assert view.data["say"][1].endswith("L1 had all of it.")


def test_blocks_on_several_sms_are_told_apart():
    x = np.arange(32, dtype=np.float32)
    run = labkit.simulate(same, 2, 32, x, np.zeros(64, np.float32), record=((0, 0, 0), (1, 0, 0)))
    view = cache(run)
    assert "L1 of each of 2 SMs" in view.title
    assert [f"warp 0 of block ({b}, 0) reads" in say for b, say in enumerate(view.data["say"])] == [True, True]
    assert all("**4 sectors of 4 had to come in**, the first with `x[0]` to `x[7]`." in say for say in view.data["say"])


def test_the_table_counts_each_array():
    view = cache(loop_trace([0, 1, 16, 0]), cpu=TINY)
    assert view.data["table"]["rows"] == [["A", "4", "2", "1.33"]]


def test_the_moves_travel_whole():
    view = cache(loop_trace([0, 16]), cpu=TINY)
    assert unpack(view.data["moves"]).tolist() == [[0, 0, 1], [1, 1, 1]]
    assert view.data["arrays"] == [{"name": "A", "shape": [32], "strides": [4], "base": 0}]


def test_a_long_run_says_what_it_leaves_out():
    view = cache(loop_trace(range(32)), cpu=TINY, steps=10)
    assert len(view.data["say"]) == 10
    assert "22 more followed" in view.data["say"][-1]


def test_a_part_of_a_traced_loop_stands_beside_the_misses_of_the_whole():
    def summed(X, total):
        for i in range(X.size):
            total[0] += X[i]

    run = loops.trace(summed, np.ones(64, np.float32), np.zeros(1, np.float32), cpu=loops.SMALL_CPU, record=20)
    view = cache(run, cpu=loops.SMALL_CPU)
    assert view.data["whole"] == {"misses": 64 * 4 // 64 + 1, "accesses": 3 * 64}
    assert view.title == "Cache: a 4 KB L1 while `summed` runs, the first 20 of 192 accesses"
    assert cache(run, cpu=TINY).data["whole"] is None  # another CPU's misses were not counted


def test_a_run_without_accesses_is_refused():
    with pytest.raises(ValueError, match="no recorded accesses"):
        cache(trace([], {}))


def test_hit_rates_point_out_the_best():
    runs = {
        4: trace([], {}, counters=Counters(global_load_sectors=100, l1_hits=50)),
        8: trace([], {}, counters=Counters(global_load_sectors=100, l1_hits=75)),
    }
    view = hit_rates(runs)
    assert view.sentence == "8 is served best: L1 had 75.0% of the requested sectors."
    assert [bar["best"] for bar in view.data["bars"]] == [False, True]


@pytest.mark.parametrize("view", [cache(loop_trace([0, 1]), cpu=TINY), hit_rates({"a": loop_trace([0])})])
def test_still_pictures_are_drawn(view, tmp_path):
    view.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 3000


@pytest.mark.parametrize("steps", [0, -1])
def test_a_view_of_no_accesses_is_refused(steps):
    with pytest.raises(ValueError, match="steps=1 or more"):
        cache(loop_trace([0, 1]), cpu=TINY, steps=steps)
