"""Who computes what, held against what the kernels' files say."""

import numpy as np
import pytest

import labkit
from labkit import cuda, gemm
from labkit.views import outputs
from labkit.views.base import unpack


@pytest.fixture(scope="module")
def traces():
    made = {}
    for slug in ("coalesced", "tiled", "register_tile", "warp_tiles"):
        step = gemm.step("fp32", slug)
        made[slug] = labkit.simulate(step.kernel, *step.geometry(128, 128), *gemm.Problem(128, 128, 16).operands())
    return made


@cuda.jit
def vector(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


@cuda.jit
def first_row(x, out):
    i = cuda.threadIdx.x
    if i < 32:
        out[0, i] = x[i]


def lane(view, number):
    return view.data["table"]["rows"][number]


def test_each_element_belongs_to_the_thread_that_stores_it(traces):
    owner = unpack(outputs(traces["register_tile"]).data["owner"])
    row, col = np.indices((128, 128))
    assert (owner == row % 16 * 16 + col % 16).all()


def test_vector_stores_count_with_all_they_store(traces):
    owner = unpack(outputs(traces["warp_tiles"]).data["owner"])
    assert (np.bincount(owner.ravel().astype(int)) == 64).all() and len(np.unique(owner)) == 256
    assert (np.unique(owner[:32, :64]) == np.arange(32)).all()  # the tile of warp 0


def test_lanes_of_a_row_share_a_and_lanes_of_a_column_share_b(traces):
    assert lane(outputs(traces["tiled"]), 5) == [5, "0", "5", "0-15", "5, 21"]
    assert lane(outputs(traces["warp_tiles"]), 0) == [
        0,
        "0-3, 16-19",
        "0-3, 32-35",
        "0-1, 4-5, 8-9, 12-13",
        "0, 2, 16, 18",
    ]


@pytest.mark.parametrize("slug", ["coalesced", "tiled", "register_tile", "warp_tiles"])
def test_what_is_shared_along_rows_is_of_a(traces, slug):
    loaded = outputs(traces[slug]).data["loaded"]
    assert [(one["array"][0], one["role"]) for one in loaded] == [("A", "A"), ("B", "B")]


def test_a_sentence_says_what_a_lane_does(traces):
    say = outputs(traces["warp_tiles"]).data["say"]
    assert len(say) == 32
    assert say[7] == (
        "Lane 7 of warp 0 computes **64 outputs**, in 8 rows and 8 columns. "
        "It loads the same values of `A_tile` as 7 others and of `B_tile` as 3 others."
    )


def test_numbers_are_those_that_were_counted(traces):
    stats = outputs(traces["register_tile"]).data["stats"]
    assert stats["rows and columns of the warp"] == "16 + 128"
    assert stats["shared loads for each multiply-add"] == "0.25"


def test_another_warp_stands_elsewhere(traces):
    assert lane(outputs(traces["warp_tiles"], warp=1), 0)[1:3] == ["0-3, 16-19", "64-67, 96-99"]


def test_only_a_matrix_has_rows_and_columns():
    x = np.ones(32, np.float32)
    with pytest.raises(ValueError, match="which element of a matrix; this block stored none"):
        outputs(labkit.simulate(vector, 1, 32, x, x * 0))


def test_a_warp_without_outputs_says_so():
    trace = labkit.simulate(first_row, 1, 64, np.ones(32, np.float32), np.zeros((2, 32), np.float32))
    assert "computes 1 output." in outputs(trace).sentence
    with pytest.raises(ValueError, match=r"Warp 1 of block \(0, 0\) stores nothing into out"):
        outputs(trace, warp=1)


def test_a_still_picture(traces, tmp_path):
    outputs(traces["warp_tiles"]).save_png(tmp_path / "outputs.png", step=5)
    assert (tmp_path / "outputs.png").stat().st_size > 5000
