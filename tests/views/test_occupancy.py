"""The box of warps, held against CUDA's own rules of occupancy for the tiled product."""

import pytest

import labkit
from labkit import gemm
from labkit.machine.gpus import gpu
from labkit.machine.occupancy import occupancy as sm_occupancy
from labkit.views import occupancy
from tests.views.texts import touching, written

TILES = (4, 8, 16, 32)


@pytest.fixture(scope="module")
def runs():
    kernel, operands = gemm.step("fp32", "tiled").kernel, gemm.Problem(M=32, N=32, K=32).operands()
    return {
        f"TILE = {tile}": labkit.simulate(
            labkit.specialise(kernel, TILE=tile), (32 // tile, 32 // tile), (tile, tile), *operands
        )
        for tile in TILES
    }


@pytest.fixture(scope="module")
def view(runs):
    return occupancy(runs)


def of(view, name):
    (choice,) = (each for each in view.data["kept"] if each["name"] == name)
    return choice


def test_blocks_and_warps_are_those_that_an_sm_holds(view):
    for name in ("T4", "RTX 4090", "A100 SXM", "H100 SXM"):
        choice = of(view, name)
        assert choice["slots"] == gpu(name).warps_per_sm
        for tile, fill in zip(TILES, choice["fills"], strict=True):
            found = sm_occupancy(name, tile * tile, 2 * tile * tile * 4)
            assert (fill["blocks"], fill["warps"]) == (found.blocks, found.warps)
            assert fill["others"] == found.warps - found.warps_per_block


def test_a_large_block_alone_leaves_nothing_to_run(view):
    said = of(view, "T4")["say"][-1]
    assert said.endswith("**1 block, 32 of 32 warps**. While it waits at a barrier, **no other warp** can run.")
    assert "**32 warps** of the others can run" in of(view, "H100 SXM")["say"][-1]
    assert of(view, "RTX 4090")["stats"]["values"][-1] == [1, "32 of 48", 0]


def test_resources_without_room_are_marked(view):
    small, *_, large = of(view, "H100 SXM")["fills"]
    assert [full for *_, full in small["bars"]] == [False, True, False, False]
    assert small["lanes"] == 0.5 and large["lanes"] == 1
    assert [text for text, *_ in large["bars"]] == [
        "64 of 64 warps",
        "2 of 32 blocks",
        "65,536 of 65,536 registers",
        "18 of 228 KB of shared memory",  # 1 KB of each block for the system
    ]
    assert [share for _, share, _ in large["bars"]] == pytest.approx([1, 2 / 32, 1, 18 / 228])
    assert all(share <= 1 for choice in view.data["kept"] for fill in choice["fills"] for _, share, _ in fill["bars"])


def test_more_registers_leave_fewer_blocks(runs):
    bars = occupancy(runs, registers=128).data["fills"][2]["bars"]
    assert bars[0][0] == "16 of 64 warps" and bars[2] == ["65,536 of 65,536 registers", 1, True]


def test_a_block_that_does_not_fit_is_told(runs):
    view = occupancy({"TILE = 32": runs["TILE = 32"]}, gpus=("T4",), registers=100)
    assert view.data["say"][0].endswith("One SM of the T4 holds **no such block**: registers would not suffice.")
    assert view.data["fills"][0]["others"] == 0


def test_the_table_has_a_row_for_each_run(view):
    data = view.data["table"]
    assert data["columns"][:3] == ["run", "threads of a block", "no room for another in"]
    assert data["rows"][2] == ["TILE = 16", 256, "threads and registers", 8, "64 of 64", 56]


def test_the_first_sentence_and_the_still_picture_are_of_the_run_that_starts(runs, tmp_path):
    view = occupancy(runs, start="TILE = 8")
    assert view.sentence.startswith("TILE = 8: a block has 64 threads in 2 warps and 512 bytes")
    view.save_png(tmp_path / "occupancy.png")
    assert (tmp_path / "occupancy.png").stat().st_size > 5000


def test_what_cannot_be_shown_is_refused(runs):
    with pytest.raises(ValueError, match="give one launch"):
        occupancy({})
    with pytest.raises(ValueError, match="no run 'TILE = 5' to start with"):
        occupancy(runs, start="TILE = 5")
    with pytest.raises(TypeError, match="occupancy takes a trace"):
        occupancy({"a": None})


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [818, 970, 320])
def test_what_is_used_up_is_said_beside_the_amounts_and_not_on_them(browser, runs, tmp_path, width):
    texts = written(browser, occupancy(runs, start="TILE = 16"), tmp_path / "view.html", width)
    bars = [one for one in texts if one["canvas"].startswith("share of each resource")]
    assert "65,536 of 65,536 registers" in [one["text"] for one in bars]
    assert len([one for one in bars if one["text"].startswith("no room")]) == 2
    assert not touching(bars, gap=4)
