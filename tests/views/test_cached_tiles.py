"""Three tiles and the lines of a cache, against what a person works out; and misses stacked by array."""

import numpy as np
import pytest

from labkit import gemm
from labkit.loops import SMALL_CPU, trace
from labkit.views import cached_tiles, misses
from labkit.views.base import unpack
from labkit.views.cached_tiles import CURRENT, OTHER, OUTSIDE
from labkit.views.misses import misses_by_array


def tiled(A, B, C, T):
    M, K = A.shape
    N = B.shape[1]
    for i0 in range(0, M, T):
        for k0 in range(0, K, T):
            for j0 in range(0, N, T):
                for i in range(i0, min(i0 + T, M)):
                    for k in range(k0, min(k0 + T, K)):
                        for j in range(j0, min(j0 + T, N)):
                            C[i, j] += A[i, k] * B[k, j]


def run(T, record=300_000):
    A, B, C = gemm.Problem(80, 80, 80).operands()
    return trace(tiled, A, B, np.zeros_like(C), T, cpu=SMALL_CPU, record=record)


@pytest.fixture(scope="module")
def runs():
    return {T: run(T) for T in (16, 24, 32)}


@pytest.fixture(scope="module")
def view(runs):
    return cached_tiles(runs, SMALL_CPU)


def lines(view, step, state, array=None):
    table = unpack(view.data["lines"][step])
    return int(((table[:, 3] == state) & (array is None or table[:, 0] == array)).sum())


def test_three_tiles_of_a_line_stay_in_the_cache(view):
    """A tile of 16 x 16 floats has 16 lines."""
    assert lines(view, 0, CURRENT) == 48 and lines(view, 0, OUTSIDE) == 0
    assert lines(view, 0, CURRENT) + lines(view, 0, OTHER) == 64
    assert view.data["say"][0].startswith(
        "T = 16: the three tiles have 48 lines, and the cache has room for 64. All of their lines stay in it. "
    )


def test_the_tile_of_b_alone_stays_where_three_are_too_large(view):
    assert lines(view, 1, OUTSIDE) == 80
    assert lines(view, 1, CURRENT, array=1) == 48 and lines(view, 1, OUTSIDE, array=1) == 0


def test_tiles_of_32_fill_the_cache_with_one_of_them(view):
    assert lines(view, 2, CURRENT) + lines(view, 2, OUTSIDE) == 3 * 64
    assert lines(view, 2, OUTSIDE, array=1) > 0
    assert "**128 of their lines were evicted** before the product ended" in view.data["say"][2]


def test_the_boxes_are_whole_tiles(view):
    for side, boxes in zip(view.data["sides"], unpack(view.data["boxes"])):
        for top, bottom, left, right in boxes.tolist():
            assert bottom - top == right - left == side - 1
            assert top % side == left % side == 0


def test_misses_are_those_of_whole_runs(runs, view):
    counted = [1000 * trace.counters.l1_misses / 80**3 for trace in runs.values()]
    assert unpack(view.data["misses"]).sum(axis=1) == pytest.approx(counted, rel=1e-5)
    assert sum(misses_by_array(runs[16]).values()) == pytest.approx(counted[0])


def test_a_run_without_a_complete_product_is_refused():
    with pytest.raises(ValueError, match="no complete product of tiles of 16: record more"):
        cached_tiles({16: run(16, record=1000)}, SMALL_CPU)


def test_misses_are_stacked_and_the_main_arrays_named(runs):
    view = misses(runs, "Misses")
    assert view.sentence == "The fewest misses per 1,000 multiply-adds: 9.45 with 16; the most: 32.1 with 32."
    assert ">32.1, mostly of B</text>" in view.data["charts"]["wide"]
    assert view.data["table"]["rows"][0] == ["16", "1.64", "3.91", "3.91", "9.45"]
    assert view.data["caption"] == "Counted over whole runs in the cache model of a small CPU."
    with pytest.raises(TypeError, match="misses takes a trace"):
        misses({"a": 1}, "")


def test_still_pictures_are_drawn(runs, view, tmp_path):
    for picture in (view, misses(runs, "Misses")):
        picture.save_png(tmp_path / "view.png")
        assert (tmp_path / "view.png").stat().st_size > 5000
