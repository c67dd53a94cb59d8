"""The timeline of warps shows what the model of time found, one lane for each worker, and says it in words."""

from dataclasses import replace

import pytest

from labkit import attention, formats
from labkit.forecast.timeline import timeline
from labkit.views import warp_timeline
from labkit.views.base import unpack
from labkit.views.warp_timeline import BUBBLE, COPY, EXP2, GEMM_1, GEMM_2, INSTANTS

CALLS = {"K_tiles": "scores", "V_tiles": "sums"}


@pytest.fixture(scope="module")
def runs():
    problem, found = attention.AttentionForward(1, 1, 128, 64, keys=256), {}
    operands = problem.operands(formats.BF16)
    for slug in ("wgmma", "overlap"):
        step = attention.ladder("forward").step(slug)
        found[slug] = step.simulate(*operands, format=formats.BF16).traces[0]
    return found


@pytest.fixture(scope="module")
def view(runs):
    return warp_timeline(runs, CALLS)


def rows(view, run, lane=None, kind=None):
    found = unpack(view.data["runs"][run]["spans"]).tolist()
    return [row for row in found if lane in (None, row[0]) and kind in (None, row[1])]


def test_lanes_are_copies_consumers_and_tensor_cores(view):
    for run in view.data["runs"]:
        assert run["lanes"] == ["copies", "warpgroup 1", "warpgroup 2", "tensor cores"]
    assert view.data["runs"][0]["letters"] == list("QKVKV")
    assert len(rows(view, 0, kind=COPY)) == 5
    assert len(rows(view, 0, 1, EXP2)) == len(rows(view, 0, 2, EXP2)) == 2, "a softmax for each tile of keys"


def test_products_of_both_warpgroups_and_bubbles_fill_the_time_of_the_tensor_cores(view, runs):
    for number, trace in enumerate(runs.values()):
        covered = sorted(row[2:] for row in rows(view, number) if row[0] >= 3)
        reach = 0
        for start, end in covered:
            assert start <= reach + 1
            reach = max(reach, end)
        assert reach == round(timeline(trace).cycles)
        for lane in (3, 4):  # the halves: scores and sums of each tile
            assert [len(rows(view, number, lane, kind)) for kind in (GEMM_1, GEMM_2)] == [2, 2]


def test_the_share_of_bubbles_is_that_of_their_length(view):
    for number, run in enumerate(view.data["runs"]):
        rests = sum(end - start for *_, start, end in rows(view, number, 5, BUBBLE))
        assert run["idle"] == pytest.approx(rests / run["cycles"], abs=0.005)
        assert 0 < run["edges"] < run["idle"]
        assert f"**{run['idle']:.0%}** in `{run['name']}`" in view.data["say"][-1]


def test_another_way_to_choose_is_another_timeline_of_the_same_run(view, runs):
    other = view.data["kept"][1]["runs"][0]
    assert other["idle"] == pytest.approx(timeline(runs["wgmma"], in_turns=False).idle_share)
    assert len(unpack(other["spans"])) > 0 and view.data["common"]["orders"][1] == "serves the first request"


def test_an_axis_may_reach_farther_and_a_run_without_copies_has_no_lane_for_them(runs):
    trace = runs["overlap"]
    assert warp_timeline({"overlap": trace}, CALLS, end_cycles=50_000).data["common"]["cycles"] == 50_000
    barriers = "copy", "wait", "init", "arrive"
    bare = replace(trace, events=tuple(event for event in trace.events if event.kind not in barriers))
    (run,) = warp_timeline({"bare": bare}, CALLS).data["runs"]
    assert run["lanes"] == ["warpgroup 1", "warpgroup 2", "tensor cores"] and run["consumers"] == 2
    lanes = unpack(run["spans"])[:, 0]
    assert lanes.min() == 0 and lanes.max() == 4, "two warpgroups, two halves of the tensor cores, bubbles"


def test_a_sentence_says_who_does_what_at_an_instant(view):
    says = view.data["say"]
    assert len(says) == INSTANTS + 1 and view.data["start"] == INSTANTS
    assert says[0].startswith("Cycle 0. Tensor cores **idle** in `wgmma` (each warpgroup waits for Q_tile)")
    assert any("computes exp2" in sentence for sentence in says)
    assert any("`overlap` is done" in sentence for sentence in says) or any("`wgmma` is done" in s for s in says)


def test_the_table_has_each_worker_at_each_instant(view):
    table = view.data["table"]
    assert table["columns"] == ["cycle", "wgmma", "overlap"] and len(table["rows"]) == INSTANTS + 1
    first = "warpgroup 1 waits for Q_tile; warpgroup 2 waits for Q_tile; tensor cores idle"
    assert table["rows"][0][1] == first
    text = " ".join(cell for row in table["rows"] for cell in row)
    assert "compute scores of warpgroup 1" in text and "sums of warpgroup 2" in text


def test_the_still_picture_is_drawn(view, tmp_path):
    view.save_png(tmp_path / "timeline.png", step=10)
    assert (tmp_path / "timeline.png").stat().st_size > 20_000


def test_what_cannot_be_shown_is_refused(runs):
    trace = runs["wgmma"]
    with pytest.raises(TypeError, match="takes runs by their names"):
        warp_timeline(trace)
    with pytest.raises(ValueError, match="issues no `wgmma`"):
        warp_timeline({"none": replace(trace, events=())})
    third = replace(next(e for e in trace.events if e.kind == "product"), array="W_tiles")
    with pytest.raises(ValueError, match="two colours for GEMMs, and these runs have 3"):
        warp_timeline({"three": replace(trace, events=(*trace.events, third))})
    shared = warp_timeline({"three": replace(trace, events=(*trace.events, third))}, {"W_tiles": "V_tiles"})
    assert shared.data["common"]["products"] == ["V_tiles", "K_tiles"], "names that were given come first"


def test_a_tile_can_be_followed_from_its_copy_to_the_stage_that_it_frees(view, runs):
    for number, run in enumerate(view.data["runs"]):
        assert [tile["name"] for tile in run["tiles"]] == ["K tile 1", "V tile 1", "K tile 2", "V tile 2"]
        for tile in run["tiles"]:
            product = GEMM_1 if tile["name"].startswith("K") else GEMM_2
            spans = [row[2:] for row in rows(view, number, kind=product)]
            assert tile["copy"] in [row[2:] for row in rows(view, number, kind=COPY)]
            for _, waits, lands, begins, ends, frees in tile["uses"]:
                assert waits <= lands <= begins and tile["copy"][1] <= begins and [begins, ends] in spans
                assert frees == -1 or ends <= frees
    first = view.data["runs"][0]["tiles"][0]
    assert first["uses"][0][1] < first["uses"][0][2] == first["copy"][1], "the first tile is waited for until it lands"
    assert "Warpgroups 1 and 2 wait for" in first["say"] and "free its stage at" in first["say"]


def test_a_run_without_copies_has_no_tile_to_follow(runs):
    barriers = "copy", "wait", "init", "arrive"
    bare = replace(runs["wgmma"], events=tuple(e for e in runs["wgmma"].events if e.kind not in barriers))
    assert warp_timeline({"bare": bare}, CALLS).data["runs"][0]["tiles"] == []
