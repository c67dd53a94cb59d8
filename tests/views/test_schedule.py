"""The schedule view tells what happened in an order of the warps, and where the orders begin to differ."""

import re

import numpy as np
import pytest
from numba import float32

import labkit
from labkit import cuda
from labkit.views import schedule
from labkit.views.base import unpack
from labkit.views.schedule_still import contents, named_rows


@cuda.jit
def shifted(x, out):
    hand = cuda.shared.array(64, float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    taken = hand[(me + 1) % 64]
    hand[me] = taken
    cuda.syncthreads()
    out[me] = hand[me]


@cuda.jit
def counted(out, tickets):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = cuda.atomic.add(tickets, 0, 1)


@cuda.jit
def crossed(locks):
    mine = cuda.threadIdx.x // 32
    if cuda.threadIdx.x % 32 == 0:
        while cuda.atomic.cas(locks, mine, 0, 1) != 0:
            pass
        while cuda.atomic.cas(locks, 1 - mine, 0, 1) != 0:
            pass
        cuda.atomic.exch(locks, 1 - mine, 0)
        cuda.atomic.exch(locks, mine, 0)


@cuda.jit
def quiet(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1)] + x[cuda.grid(1)]


@pytest.fixture(scope="module")
def explored():
    x = np.arange(64, dtype=np.float32)
    return labkit.explore(shifted, 1, 64, x, x * 0)


@pytest.fixture(scope="module")
def view(explored):
    return schedule(explored)


def order(view, ending):
    return next(kept for kept in view.data["kept"] if kept["label"] == ending)


RIGHT, LATE = "out[31] = 32 and out[63] = 0", "out[31] = 32 and out[63] = 1"


def replayed(view, kept, step):
    return contents({**view.data, **kept}, step, unpack(kept["kind"]), unpack(kept["row"]))


def test_outcomes_are_named_by_the_elements_that_tell_them_apart(view):
    assert view.data["kept"][0]["label"] == RIGHT, "of equals, that of a run in lockstep"
    assert {kept["label"] for kept in view.data["kept"]} == {RIGHT, LATE, "out[31] = 33 and out[63] = 0"}
    assert view.title == "Orders of `shifted`: 3 outcomes in all 3 orders"
    assert [kept["count"] for kept in view.data["kept"]] == [1, 1, 1]


def test_sentences_say_who_does_what_and_with_whom_it_races(view):
    late = order(view, LATE)
    lines = shifted.py_func.__code__.co_firstlineno + np.arange(20)
    read, write = int(lines[6]), int(lines[7])
    assert late["say"][0].startswith("Step 1 of 12: **warp 0** writes `hand[0:32]` at line")
    assert late["say"][2] == f"Step 3 of 12: the barrier in line {lines[5]} opens, since all warps have come."
    racing = next(say for say in late["say"] if "Here the orders begin to differ" in say)
    assert f"**warp 1** reads `hand[0]` and `hand[33:64]` at line {read}" in racing
    assert "**Race**: warp 0 wrote there in step 5; nothing made it come first." in racing
    assert "`hand[0]` is 1 now, and 0 in the order that ends with `out[31]` = 32 and `out[63]` = 0." in racing
    before = late["say"][4]
    assert f"**warp 0** writes `hand[0:32]` at line {write}. **Race**: warp 1 reads there in step 6" in before
    assert late["say"][-1].endswith("**The end**: `out[31]` = 32 and `out[63]` = 1, as in 1 of 3 orders.")


def test_ends_are_marked_as_right_or_wrong_where_somebody_can_say_so(view, explored):
    wanted = np.roll(np.arange(64, dtype=np.float32), -1)
    kept = schedule(explored, right=lambda outputs: np.array_equal(outputs[1], wanted)).data["kept"]
    assert {order["label"]: order["verdict"] for order in kept}[RIGHT] == "right"
    assert sorted(order["verdict"] for order in kept) == ["right", "wrong", "wrong"]
    late = next(order for order in kept if order["label"] == LATE)
    assert late["say"][-1].endswith("`out[63]` = 1, which is wrong, as in 1 of 3 orders.")
    assert {order["verdict"] for order in view.data["kept"]} == {""}


def test_it_begins_where_the_orders_part(view):
    late = order(view, LATE)
    assert "Here the orders begin to differ" in late["say"][late["start"]]
    assert "Here the orders begin to differ" in view.sentence


def test_the_array_holds_what_was_written_so_far(view):
    late = order(view, LATE)
    held, now, _ = replayed(view, late, 0)
    assert held[:32] == [str(n) for n in range(32)] and held[32:] == [None] * 32 and now == set(range(32))
    held, now, racing = replayed(view, late, 5)
    assert held[0] == "1" and racing == {0} and now == {0, *range(33, 64)}
    held, now, _ = replayed(view, late, 11)
    assert held[63] == "1" and not now


@cuda.jit
def kept_apart(out):
    held = cuda.shared.array(32, float32)
    held[cuda.threadIdx.x] = cuda.blockIdx.x
    cuda.syncthreads()
    out[cuda.grid(1)] = held[31 - cuda.threadIdx.x]


def test_the_shared_array_is_that_of_the_block_at_work():
    order = [(0, 0), (1, 0), (0, 0), (1, 0)]  # both write, then both read
    view = schedule(labkit.explore(kept_apart, 2, 32, np.zeros(64, np.float32), orders=[order]))
    assert any(f"since all warps of block {block} have come" in say for block in (0, 1) for say in view.data["say"])
    reads = np.flatnonzero(unpack(view.data["kind"]) == 0)
    assert [set(replayed(view, view.data, step)[0]) for step in reads] == [{"0"}, {"1"}]


@cuda.jit
def looked_at(out):
    """Warp 0 writes, four others read."""
    w = cuda.threadIdx.x // 32
    if cuda.threadIdx.x % 32 == 0:
        if w == 0:
            out[0] = 7
        else:
            out[w] = out[0]


def test_of_many_races_the_nearest_on_both_sides_are_told():
    explored = labkit.explore(looked_at, 1, 160, np.zeros(5), orders=[[1, 1, 2, 2, 0, 3, 3, 4, 4]])
    say = schedule(explored).data["say"][4]
    assert "warp 2 read there in step 3" in say and "warp 3 reads there in step 6" in say and say.count("Race") == 2


def test_each_warp_stands_at_the_line_it_does_next(view):
    late, first = order(view, LATE), view.data["common"]["first"]
    stands = unpack(late["stands"])
    source = view.data["common"]["source"]
    at = [[source[line - first].strip() if line else "" for line in row] for row in stands]
    assert at[0] == ["cuda.syncthreads()", "hand[me] = x[me]"]
    assert at[5] == ["cuda.syncthreads()", "hand[me] = taken"]
    assert at[-1] == ["", ""]


def test_another_array_can_be_shown(explored):
    data = schedule(explored, array="out").data
    assert data["common"]["array"]["name"] == "out" and data["common"]["array"]["filled"] == ["0"] * 64
    with pytest.raises(ValueError, match=r"no array 'hands'; it has x, out and hand"):
        schedule(explored, array="hands")


def test_the_race_that_explains_it_is_told(view, explored):
    assert view.data["common"]["explained"] == explored.explained_by.message
    assert "Put `cuda.syncthreads()` between line" in explored.explained_by.message


def test_atomics_that_meet_are_no_race_and_blocks_are_named():
    view = schedule(labkit.explore(counted, 3, 32, np.zeros(3, np.int32), np.zeros(1, np.int32)))
    text = " ".join(view.data["say"])
    assert "**block 0, warp 0** updates `tickets[0]`" in text and "Race" not in text
    assert "Either may be first: block 1, warp 0" in text
    assert not any(view.data["races"]) and view.data["common"]["explained"] == ""
    assert view.data["common"]["rows"] == [f"block {b} warp 0" for b in range(3)]
    assert len({kept["label"] for kept in view.data["kept"]}) == 6


def test_a_launch_that_hangs_is_an_end_of_its_own():
    view = schedule(labkit.explore(crossed, 1, 64, np.zeros(2, np.int32)), right=lambda outputs: True)
    assert [kept["verdict"] for kept in view.data["kept"]] == ["right", ""]
    assert [kept["label"] for kept in view.data["kept"]] == ["locks[1] = 0", "a launch that hangs"]
    assert re.search(
        r"\*\*The launch hangs\.\*\* Deadlock: thread \d+ of block 0 waits", view.data["kept"][1]["say"][-1]
    )
    assert "in the order that ends with a launch that hangs" in " ".join(view.data["say"])


def test_one_outcome_is_said_to_be_that_of_every_order():
    x = np.ones(64, np.float32)
    view = schedule(labkit.explore(quiet, 1, 64, x, x * 0))
    assert view.title == "Orders of `quiet`: one outcome in every order"
    assert len(view.data["kept"]) == 1
    assert view.data["say"][-1].endswith("**The end**: `out[32]` = 2, as in every order.")
    assert view.data["start"] == 0


@cuda.jit
def idle(out):
    if out.size > 100:
        out[0] = 1


def test_a_launch_without_accesses_says_so(tmp_path):
    view = schedule(labkit.explore(idle, 1, 32, np.zeros(3)))
    assert view.sentence == "No warp touches memory that the kernel changes."
    view.save_png(tmp_path / "idle.png", dpi=40)


@cuda.jit
def thirds(out):
    out[0, cuda.threadIdx.x] = 1 / 3


def test_elements_show_few_digits_and_sentences_more():
    view = schedule(labkit.explore(thirds, 1, 2, np.zeros((2, 33))))
    held, _, _ = replayed(view, view.data, 0)
    assert held[:3] == ["0.3333", "0.3333", "0"] and view.data["common"]["array"]["columns"] == 33
    assert "writes out[0, 0:2] at line" in view.sentence and "and leaves 0.3333333 in each" in view.sentence


@cuda.jit
def long(out):
    for _ in range(400):
        out[0] += 1


def test_long_schedules_are_cut_and_that_is_said():
    view = schedule(labkit.explore(long, 1, 32, np.zeros(1)))
    assert len(view.data["say"]) == 500
    assert view.data["say"][-1].endswith("The view ends here, 300 steps before the launch does.")


def test_rows_are_named_in_few_words():
    common = {"rows": [f"warp {n}" for n in range(8)], "perBlock": 8}
    assert [named_rows(common, rows) for rows in ([3], [0, 1, 2], [0, 2, 3, 7])] == [
        "warp 3",
        "warps 0–2",
        "warps 0, 2–3, 7",
    ]
    assert named_rows({**common, "perBlock": 4}, [0, 4]) == "2 warps"


def test_what_is_no_exploration_is_refused():
    with pytest.raises(TypeError, match=r"what `labkit.explore` returned, not a list"):
        schedule([])


def test_still_pictures(view, tmp_path):
    sizes = set()
    for step in (0, 5):
        view.save_png(tmp_path / f"{step}.png", step=step, dpi=80)
        sizes.add((tmp_path / f"{step}.png").stat().st_size)
    assert len(sizes) == 2 and min(sizes) > 15_000


def test_another_outcome_can_be_shown_first(view, explored):
    data = schedule(explored, start=2).data
    assert data["chosen"] == 2 and data["label"] == view.data["kept"][2]["label"]
    with pytest.raises(ValueError, match="no outcome 3 to start with: choose one of 0 to 2"):
        schedule(explored, start=3)


@cuda.jit
def add_up(totals, partials, arrived, out):
    block = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        partials[block] = totals[block]
        if cuda.atomic.add(arrived, 0, 1) == 1:
            out[0], out[1] = partials[0] + partials[1], block  # the total, and the block that added it up last


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [856, 1000, 600])
def test_what_a_warp_does_next_covers_no_part_of_its_line(browser, tmp_path, width):
    empty = np.zeros(2, np.float32), np.zeros(1, np.int32), np.zeros(2, np.float32)
    shown = schedule(labkit.explore(add_up, 2, 32, np.float32([3, 4]), *empty), array="out")
    shown.save_html(tmp_path / "view.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "view.html").as_uri())
    page.wait_for_selector(".labkit-view[data-revision]")
    covered = """() => [...document.querySelectorAll('.line .at:not([hidden])')].map(badge => {
        const text = document.createRange(), {left, top} = badge.getBoundingClientRect();
        text.selectNodeContents(badge.previousSibling);
        const code = text.getBoundingClientRect();
        return top < code.bottom - 1 && left < code.right ? badge.parentNode.textContent : '';
    })"""
    page.locator(".labkit-view").first.focus()
    seen = []
    for _ in range(len(shown.data["say"])):
        seen += page.evaluate(covered)
        page.keyboard.press("ArrowRight")
    page.close()
    assert seen and not any(seen)
