"""A transpose access by access, held against counts by hand and against those of the runs."""

import numpy as np
import pytest

from labkit import layouts
from labkit.views import transposing
from labkit.views.base import unpack
from labkit.views.transposing import cells_at

STEPS = layouts.ladder("transpose")
PROBLEM = layouts.Conversion(N=1, C=32, H=4, W=8)


def run(slug, problem=PROBLEM, **options):
    operands = problem.operands()
    found = STEPS.step(slug).simulate(*operands, **options)
    assert problem.is_right(operands, found.operands)
    return found.traces[0]


@pytest.fixture(scope="module")
def traces():
    blocks = [(0, j, 0) for j in range(4)]
    return {"naive": run("naive", record=blocks), "tiled": run("tiled"), "padded": run("padded")}


@pytest.fixture(scope="module")
def view(traces):
    return transposing(traces)


def test_sectors_and_wavefronts_are_those_that_the_runs_counted(view, traces):
    last = dict(zip(view.data["stats"]["labels"], view.data["stats"]["values"][-1], strict=True))
    for name, trace in traces.items():
        counted = trace.counters
        sectors = counted.global_load_sectors + counted.global_store_sectors
        assert last[f"sectors of x and y, {name}"] == sectors
        if name != "naive":
            wavefronts = counted.shared_load_wavefronts + counted.shared_store_wavefronts
            assert last[f"wavefronts of tile, {name}"] == wavefronts
    # 32 rows of 4 sectors each; a store of naive takes 32; a column of an unpadded tile is in one bank
    assert [*last.values()] == [32 * (4 + 32), 32 * 8, 32 * (1 + 32), 32 * 8, 32 * 2]


def test_what_is_said(view):
    assert len(view.data["say"]) == 64
    assert "`tiled` loads 32 elements of `x` in **4 sectors**, to `tile` in 1 wavefront" in view.data["say"][0]
    assert "`naive` stores 32 elements of `y` in **32 sectors**" in view.data["say"][-1]
    assert "`tiled` stores 32 elements of `y` in **4 sectors**, from `tile` in 32 wavefronts" in view.data["say"][-1]
    assert view.data["say"][-1].endswith(
        "`padded` stores 32 elements of `y` in **4 sectors**, from `tile` in 1 wavefront."
    )


def test_rows_come_in_and_columns_leave(view):
    naive, tiled, padded = view.data["sides"]
    assert tiled["shapes"] == [[32, 32], [32, 32], [32, 32]] and padded["shapes"][1] == [32, 33]
    strength, now, (panel, moved) = cells_at(tiled, 63)
    assert panel == 2 and sorted(now[2]) == sorted(moved) == [*range(31 * 32, 32 * 32)], "a row of y"
    assert sorted(now[1]) == [*range(31, 1024, 32)], "a column of the tile"
    shades = strength[0].reshape(32, 32)
    assert np.allclose(strength[1].reshape(32, 32), shades) and np.allclose(strength[2].reshape(32, 32), shades.T)
    _, now, (panel, moved) = cells_at(naive, 63)
    assert panel == 2 and len(now[2]) == 32 and len(moved) == 8 * 32, "of 8 elements in a sector one is stored"
    assert unpack(naive["tiles"]).max() == -1


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    for step in (0, 40):
        view.save_png(tmp_path / "transposing.svg", step=step)
        assert (tmp_path / "transposing.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match="record all of its blocks"):
        transposing({"naive": run("naive", record=[(0, 0, 0)])})
    with pytest.raises(ValueError, match="at most 64 x 64"):
        transposing({"naive": run("naive", layouts.Conversion(N=1, C=128, H=4, W=8))})
    with pytest.raises(TypeError, match="takes traces by their names"):
        transposing(run("tiled"))
