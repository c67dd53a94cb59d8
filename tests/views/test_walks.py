"""Two walks side by side: what is counted is what the trace counted, and the picture agrees with the cache."""

import numpy as np
import pytest

from labkit.loops import SMALL_CPU, trace
from labkit.views import walks
from labkit.views.walks import element_states


def along_rows(X, s):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            s[0] += X[i, j]


def down_columns(X, s):
    for j in range(X.shape[1]):
        for i in range(X.shape[0]):
            s[0] += X[i, j]


@pytest.fixture(scope="module")
def runs():
    X, s = np.ones((80, 48), np.float32), np.zeros(1, np.float32)
    return {loop.__name__: trace(loop, X, s, cpu=SMALL_CPU, record=20_000) for loop in (along_rows, down_columns)}


@pytest.fixture(scope="module")
def view(runs):
    return walks(runs, SMALL_CPU)


def test_all_misses_are_counted_in_the_end(runs, view):
    final = view.data["stats"]["values"][-1]
    assert final == [sum(run.served("X")[1:]) for run in runs.values()]
    assert final[0] == 80 * 48 // 16
    assert final[1] > 10 * final[0]


def test_the_first_accesses_are_told_one_by_one(view):
    assert view.data["say"][0] == (
        "Access 1: `along_rows` reads `X[0, 0]`, and **misses**: a line of 64 bytes comes in; "
        "`down_columns` reads `X[0, 0]`, and **misses**: a line of 64 bytes comes in."
    )
    assert view.data["say"][1].startswith("Access 2: `along_rows` reads `X[0, 1]`, and hits; `down_columns` reads `X[1")
    assert view.data["say"][-1].startswith("After 3,840 accesses `along_rows` has missed **240** times, ")


def test_it_opens_after_two_rows(view):
    assert view.sentence.startswith("After 96 accesses along_rows has missed 6 times")


def test_the_picture_is_the_cache(view):
    rows, columns = view.data["sides"]
    states = element_states(view.data, rows, view.data["start"])
    assert (states[:2] == 2).all() and (states[2:] == 0).all()
    states = element_states(view.data, columns, len(view.data["say"]) - 1)
    assert set(np.unique(states)) == {1, 2}
    held = (states == 2).sum() // 16  # lines; those of the sums are in the cache, too
    assert 62 <= held <= 64


def test_a_trace_must_be_recorded_whole():
    X, s = np.ones((4, 4), np.float32), np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="along_rows has accesses that were not recorded"):
        walks({"rows": trace(along_rows, X, s, cpu=SMALL_CPU, record=8)}, SMALL_CPU)
    with pytest.raises(TypeError, match="walks takes a trace"):
        walks({"rows": X}, SMALL_CPU)


def test_walks_of_other_lengths_are_refused():
    short, long = (
        trace(along_rows, np.ones((n, 4), np.float32), np.zeros(1, np.float32), cpu=SMALL_CPU, record=1000)
        for n in (4, 5)
    )
    with pytest.raises(ValueError, match="equally often"):
        walks({"short": short, "long": long}, SMALL_CPU)


def test_a_still_picture_is_drawn(view, tmp_path):
    view.save_png(tmp_path / "walks.png")
    assert (tmp_path / "walks.png").stat().st_size > 5000
