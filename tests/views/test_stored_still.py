"""A view that went through a notebook still has a still picture, unless that would give an answer away."""

import json

import numpy as np
import pytest

from labkit.views import memory, number_line, playground, predict, verdicts
from labkit.views.playground import INNER_SCRIPTS
from labkit.views.stored_still import WITHOUT, _function, write_still
from tests.views.test_playground import setup_walk, walk


def stored(view):
    """Script and data of a view as a notebook's text holds them."""
    return view.script, json.loads(json.dumps(view.page_data()))


@pytest.mark.parametrize("script", sorted({*INNER_SCRIPTS} - WITHOUT - {"chart"}))
def test_each_view_has_a_still_picture(script):
    assert callable(_function(script))


def test_a_picture_is_drawn_once(tmp_path):
    view = number_line({"halves": np.arange(1, 9) / 2})
    path = tmp_path / write_still(*stored(view), tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")
    path.write_bytes(b"kept")
    assert write_still(*stored(view), tmp_path) == path.name
    assert path.read_bytes() == b"kept"


def test_a_chart_has_the_colours_of_the_light_theme(tmp_path):
    name = write_still(*stored(verdicts({"Products": {"confirmed": 2, "open": 1}}, title="")), tmp_path)
    svg = (tmp_path / name).read_text(encoding="utf-8")
    assert name.endswith(".svg")
    assert "confirmed" in svg
    assert "var(" not in svg


def test_a_playground_has_the_picture_of_the_run_that_it_shows_first(tmp_path):
    data = stored(playground(walk, setup_walk, view=memory, STRIDE=[1, 2, 4], n=[32, 64]))
    name = write_still(*data, tmp_path)
    first = memory(playground(walk, setup_walk, view=memory, STRIDE=[1, 2, 4], n=[32, 64]).trace)
    assert name == write_still(*stored(first), tmp_path)


def test_questions_and_answers_have_none(tmp_path):
    question = predict("How many?")
    for view in question, question.compare(7):
        assert write_still(*stored(view), tmp_path) is None
    assert not [*tmp_path.iterdir()]
