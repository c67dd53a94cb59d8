"""Sliders that run the simulator again, on the newest kernel of that name."""

import gc
import json
import types

import numpy as np
import pytest
from IPython.core.events import EventManager, available_events

from labkit import cuda
from labkit.gemm.fp32.s03_tiled import tiled
from labkit.views import memory, playground
from labkit.views.playground import INNER_SCRIPTS

STRIDE = 1


@cuda.jit
def walk(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * STRIDE]


def setup_walk(STRIDE, n):
    return n // 32, 32, np.ones(n * STRIDE, np.float32), np.zeros(n, np.float32)


def setup(TILE):
    A = np.ones((32, 32), np.float32)
    return (32 // TILE, 32 // TILE), (TILE, TILE), A, A, np.zeros_like(A)


@pytest.fixture
def view():
    return playground(walk, setup_walk, view=memory, STRIDE=[1, 2, 4], n=(32, 96, 32))


def test_sliders_start_at_the_kernel_s_own_values_or_in_the_middle_and_set_constants_and_sizes(view):
    assert repr(view) == "STRIDE = 1, n = 64: no errors, no advice."
    assert view.trace.grid == (2, 1, 1) and "100% of the bytes" in view.data["shown"]["data"]["say"][0]
    assert playground(walk, setup_walk, STRIDE=[2, 4, 8], n=[32]).data["setting"] == "STRIDE = 4, n = 32"


@pytest.mark.parametrize("own", [np.ones(3), None, "4", 5])
def test_a_value_of_the_kernel_that_the_slider_does_not_hold_is_no_stumbling_block(own):
    @cuda.jit
    def held(out):
        out[0] = WIDTH

    WIDTH = own
    view = playground(held, lambda: (1, 1, np.zeros(1, np.float32)), WIDTH=[2, 4, 8])
    assert view.data["setting"] == "WIDTH = 4"


def test_a_move_runs_again_and_keeps_the_numbers_before(view):
    view.move(STRIDE=2)
    assert "50% of the bytes" in view.data["shown"]["data"]["say"][0]
    counters = {label: (now, before) for label, now, before in view.data["counters"]}
    assert counters["sectors moved"] == ("24", "16")


def test_the_view_gets_the_sliders_that_it_names():
    def picture(run, STRIDE, array="x"):
        shown.append((STRIDE, array, run.grid))
        return memory(run, array=array)

    shown = []
    playground(walk, setup_walk, view=picture, STRIDE=[1, 2, 4], n=(32, 96, 32)).move(STRIDE=4)
    assert shown == [(1, "x", (2, 1, 1)), (4, "x", (2, 1, 1))]


def test_a_message_from_the_browser_is_answered_in_one_update(view):
    updates = []
    view.widget.observe(lambda change: updates.append(change["new"]), "data")
    view.handle_message({"positions": {"STRIDE": 0, "n": 2}, "serial": 7})
    assert [update["serial"] for update in updates] == [7]
    assert updates[0]["setting"] == "STRIDE = 1, n = 96"
    json.dumps(updates[0], allow_nan=False)


def test_an_error_is_a_sentence_and_the_last_picture_stays(view):
    shown = view.data["shown"]
    view.setup = lambda STRIDE, n: (1, 2048, np.ones(4, np.float32), np.zeros(4, np.float32))
    view.move(STRIDE=4)
    assert "2048" in view.data["error"] and view.data["error"] in view.data["say"]
    assert view.data["shown"] == shown


def test_what_setup_raises_is_shown_too(view):
    def broken(STRIDE, n):
        raise ValueError("no such matrix")

    view.setup = broken
    view.move(STRIDE=4)
    assert view.data["error"] == "ValueError: no such matrix"


def test_the_newest_kernel_of_the_notebook_runs(view, monkeypatch):
    @cuda.jit
    def walk(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i * STRIDE] * x[0]

    shell = types.SimpleNamespace(user_ns={})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    view.move(STRIDE=1)
    once = view.trace.counters.global_loads
    shell.user_ns["walk"] = walk
    view.move(STRIDE=1)
    assert view.trace.counters.global_loads == 2 * once


def test_an_edited_kernel_makes_the_picture_stale_until_it_runs(monkeypatch):
    def cell(factor):
        @cuda.jit
        def walk(x, out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = x[i * STRIDE] * factor

        return walk

    @cuda.jit
    def edited(x, out):
        i = cuda.grid(1)
        out[i] = x[i * STRIDE]

    shell = types.SimpleNamespace(user_ns={"walk": cell(2)}, events=EventManager(None, available_events))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    view = playground(cell(2), setup_walk, view=memory, STRIDE=[1, 2, 4], n=(32, 96, 32))
    shell.user_ns["walk"] = cell(2)  # the same cell, run again
    shell.events.trigger("post_run_cell", None)
    assert not view.data.get("stale")
    shell.user_ns["walk"] = edited
    shell.events.trigger("post_run_cell", None)
    assert view.data["stale"]
    view.handle_message({"positions": view.data["positions"], "serial": 1})
    assert not view.data.get("stale")
    shell.events.trigger("post_run_cell", None)
    assert not view.data.get("stale")


def test_a_playground_that_is_gone_looks_no_more(monkeypatch):
    shell = types.SimpleNamespace(user_ns={}, events=EventManager(None, available_events))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    view = playground(walk, setup_walk, view=memory, STRIDE=[1, 2], n=[32])
    assert len(shell.events.callbacks["post_run_cell"]) == 1
    del view
    gc.collect()
    shell.events.trigger("post_run_cell", None)
    assert not shell.events.callbacks["post_run_cell"]


def test_a_race_is_found_while_sliding():
    @cuda.jit
    def racy(x, out):
        held = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        held[i] = x[i]
        out[i] = held[63 - i]

    def prepare(scale):
        return 1, 64, np.full(64, scale, np.float32), np.zeros(64, np.float32)

    view = playground(racy, prepare, scale=[1, 2])
    assert "1 error found" in repr(view)
    assert "race" in view.trace.errors[0].kind


def test_a_page_holds_a_few_positions():
    view = playground(tiled, setup, TILE=[4, 8, 16, 32])
    before = dict(view.data)
    kept = view.page_data()["kept"]
    assert [state["setting"] for state in kept] == ["TILE = 4", "TILE = 16", "TILE = 32"]
    assert view.data == before, "making a page leaves the live view as it was"


def test_a_slider_that_changes_nothing_says_so():
    view = playground(walk, setup_walk, STRIDE=[1], n=[32], TIEL=[1, 2])
    assert view.data["error"] == "ValueError: The slider TIEL changes nothing: neither walk nor setup names it."


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ((5, 1), "holds no value"),
        ((1, 5, 0), "holds no value"),
        ((5, 1, -1), "holds no value"),
        ((0.0, 1.0), "whole numbers"),
        ((0, "a"), "whole numbers"),
        ((0, 8, 0.5), "whole numbers"),
    ],
)
def test_a_range_that_cannot_be_walked_is_refused(bad, says):
    with pytest.raises(ValueError, match=f"The slider STRIDE .*{says}"):
        playground(walk, setup_walk, STRIDE=bad, n=[32])


@pytest.mark.parametrize("bad", [7, (1,), [], "abc"])
def test_a_slider_needs_values(bad):
    with pytest.raises(ValueError, match="A slider takes a range"):
        playground(walk, setup_walk, STRIDE=bad, n=[32])


def test_a_move_beyond_the_slider_is_refused(view):
    with pytest.raises(ValueError, match=r"STRIDE cannot be 3; the sliders hold STRIDE in \[1, 2, 4\]"):
        view.move(STRIDE=3)


def test_a_grid_may_be_an_integer_of_numpy():
    def counted(n):
        return np.int64(n // 32), np.int32(32), np.ones(n, np.float32), np.zeros(n, np.float32)

    view = playground(walk, counted, n=[32, 64, 96])
    assert view.data["error"] is None
    assert view.trace.samples.blocks == ((1, 0, 0),)


@pytest.mark.parametrize("grid", ["two", 2.0, None, 0, (2, 2, 2, 2)])
def test_a_grid_that_is_none_is_told_in_the_simulators_words(grid):
    view = playground(walk, lambda n: (grid, 32, np.ones(n, np.float32), np.zeros(n, np.float32)), n=[32])
    assert view.data["error"].startswith("the grid")


def test_what_cannot_be_run_is_refused():
    with pytest.raises(TypeError, match="playground takes a kernel or a loop, not None"):
        playground(None, setup_walk, n=[1])
    with pytest.raises(TypeError, match="setup is a function .*, not None"):
        playground(walk, None, n=[1])


@pytest.mark.parametrize("prepared", [3, None, (1,)])
def test_a_setup_that_returns_no_launch_is_told_in_the_view(prepared):
    view = playground(walk, lambda n: prepared, n=[1])
    assert "setup returns `grid, block, *arguments`, not" in view.data["error"]


def test_the_numbers_beside_it_can_be_ones_own():
    view = playground(tiled, setup, counters=lambda trace: {"blocks": f"{np.prod(trace.grid)}"}, TILE=[4, 8, 16])
    before = view.data["counters"]
    view.move(TILE=8)
    assert [row[0] for row in before] == ["blocks"]
    assert view.data["counters"][0][2] == before[0][1] != view.data["counters"][0][1]


def test_advice_that_an_author_knows_of_is_folded():
    folded, shown = (playground(tiled, setup, TILE=[4, 8], **options) for options in ({"advice": False}, {}))
    assert folded.data["findings"] == shown.data["findings"]
    assert (folded.data["advice"], shown.data["advice"]) == (False, True)


def test_several_blocks_can_be_recorded():
    view = playground(tiled, setup, record=[(0, 0), (1, 0)], TILE=[4, 8])
    assert list(view.trace.samples.blocks) == [(0, 0, 0), (1, 0, 0)]


def test_advice_that_is_left_aside_is_not_counted():
    counted, uncounted = (playground(walk, setup_walk, advice=advice, STRIDE=[4], n=[64]) for advice in (True, False))
    assert counted.sentence.endswith("1 piece of advice.")
    assert uncounted.sentence.endswith("no errors.")


def test_a_page_holds_the_scripts_and_the_first_picture_of_its_runs_once(view):
    page = view.to_html()
    drawn = [script for script in INNER_SCRIPTS if f"\n{script}: (() => {{" in page]
    assert drawn == ["memory"] and len(page) < len(view.module()) / 2
    data = json.loads(page.split('id="labkit-data">')[1].split("</script>")[0])
    assert data["shown"] is None and view.data["shown"] in [state["shown"] for state in data["kept"]]
