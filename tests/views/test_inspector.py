"""One thread's variables, statement by statement."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.views import inspector


@cuda.jit
def powers(out):
    i = cuda.grid(1)
    value = np.float32(1)
    for _ in range(3):
        value *= np.float32(2)
    out[i] = value


@pytest.fixture
def view():
    return inspector(labkit.simulate(powers, 2, 4, np.zeros(8, np.float32), inspect=(1, 2)))


def test_each_step_holds_what_the_statement_changed(view):
    values = [change["value"] for change in view.data["changes"] if "value" in change]
    assert values == ["1", "2", "4", "8"]
    assert view.data["changes"][0] == {"i": "6"}


def test_sentences_say_what_became_of_what(view):
    assert view.sentence.endswith("i is 6.")
    assert any("`value` becomes 8" in say for say in view.data["say"])
    assert "no variable of the thread changes" in view.data["say"][-1]


def test_lines_are_those_of_the_source(view):
    first = view.data["first"]
    marked = [view.data["source"][line - first].strip() for line in view.data["lines"]]
    assert marked[0] == "i = cuda.grid(1)" and marked[-1] == "out[i] = value"


def test_a_trace_that_inspected_no_thread_is_refused():
    with pytest.raises(ValueError, match=r"simulate with inspect=\(block, thread\)"):
        inspector(labkit.simulate(powers, 2, 4, np.zeros(8, np.float32)))


def test_still_picture(view, tmp_path):
    view.save_png(tmp_path / "a.png", step=3)
    assert (tmp_path / "a.png").stat().st_size > 5000
