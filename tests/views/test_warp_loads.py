"""One warp's loads in the matrices, held against the simulator's counters."""

import numpy as np
import pytest

import labkit
from labkit import cuda, gemm
from labkit.views import stills, warp_loads
from labkit.views.base import unpack
from labkit.views.warp_loads import cell_colours


def run(slug, M=24, N=40, K=32):
    step = gemm.step("fp32", slug)
    A, B, C = gemm.Problem(M, N, K).operands()
    return labkit.simulate(step.kernel, *step.geometry(M, N), A, B, C)


@pytest.fixture(scope="module")
def both():
    return {slug: run(slug) for slug in ("naive", "coalesced")}


def test_17_sectors_move_where_4_are_enough(both):
    view = warp_loads(both)
    assert view.data["say"][5] == (
        "Step 6: sectors that move. naive: **17** (16 of A and 1 of B); coalesced: **4** (2 of A and 2 of B)."
    )
    assert view.data["stats"]["values"][31] == [32 * 17, 32 * 4]
    assert len(view.data["say"]) == 33 and view.data["say"][32].startswith("Store: sectors that the 32 sums take.")


def test_without_sectors_both_load_the_same(both):
    view = warp_loads(both, sectors=False)
    assert view.data["stats"]["values"][31] == [32 * 64, 32 * 64], "nothing gives the answer away"
    assert "sector" not in " ".join(view.data["say"])


def test_sectors_are_those_that_the_simulator_counted():
    trace = run("coalesced", 2, 16, 8)  # one block, of which one warp finds elements
    counted = trace.counters.global_load_sectors + trace.counters.global_store_sectors
    assert warp_loads({"coalesced": trace}).data["stats"]["values"][-1] == [counted]


def test_what_moves_holds_what_is_used(both):
    side = warp_loads(both).data["sides"][0]
    used, moved = ({tuple(row) for row in unpack(side[key]).tolist()} for key in ("used", "moved"))
    assert used < moved and len(moved) == 8 * (32 * 17 + 16)
    assert side["outputs"] == [40 * row + col for row in range(16) for col in range(2)]


def test_the_still_picture_marks_what_is_used_now(both, tmp_path):
    view = warp_loads(both)
    hot = (cell_colours(view.data, view.data["sides"][0], 0, 9) == stills.rgb("hot")).all(axis=2)
    assert hot[:16, 9].all() and hot.sum() == 16
    view.save_png(tmp_path / "loads.png", step=9)
    assert (tmp_path / "loads.png").stat().st_size > 5000


@cuda.jit
def doubled(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + x[i]


def test_what_is_no_product_is_refused(both):
    x = np.ones(32, np.float32)
    with pytest.raises(ValueError, match="doubled has no matrix A: name its matrices by `arrays`"):
        warp_loads({"doubled": labkit.simulate(doubled, 1, 32, x, x)})
    with pytest.raises(ValueError, match="the matrices have other shapes"):
        warp_loads({**both, "small": run("naive", 8, 8, 8)})
    with pytest.raises(ValueError, match="warp_loads draws a product"):
        warp_loads({"naive": both["naive"]}, arrays="BAC")
