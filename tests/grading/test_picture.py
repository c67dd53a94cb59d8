"""A failing answer's picture: of a run that its author sees too, at the line, still, and no part of the verdict."""

import json
from xml.etree import ElementTree

import pytest
from handed_in import SAXPY, setup_texts, solutions

from labkit.exercises import chapter_of
from labkit.grading import judge as judging
from labkit.grading.judge import NOT_SOLVED, Judge

WRONG = SAXPY.replace("+ y", "- y")
HIDDEN = SAXPY.replace("i < out.size", "i < out.size and i < 1100")  # right on the sizes that are known
LINE = {text: number for number, text in enumerate(WRONG.splitlines(), 1)}["        out[i] = a * x[i] - y[i]"]


@pytest.fixture
def said(capsys, tmp_path):
    """Return a function that returns what the judge writes of an answer that is not solved."""

    def judged(id, text):
        details = tmp_path / "details.jsonl"
        Judge(setup_texts(chapter_of(id)), seed=1, details=str(details))(id, text)
        assert capsys.readouterr().out == f"{NOT_SOLVED}\n"
        line = details.read_text()
        details.unlink()
        return json.loads(line)

    return judged


def test_a_wrong_answer_is_drawn_at_its_line_and_told_in_words(said):
    found = said("write-saxpy", WRONG)
    assert (found["reason"], found["line"]) == ("result", LINE)
    assert f"line {LINE}: warp 0 loads x[0:32] and y[0:32] and writes out[0:32]" in found["pictured"]
    assert "saxpy" in found["pictured"] and not set("`*") & set(found["pictured"])
    elements = list(ElementTree.fromstring(found["picture"]).iter())
    texts = {element.text for element in elements if element.tag.endswith("}text")}
    assert {"x", "y", "out"} <= texts
    assert not [element for element in elements if element.tag.rpartition("}")[2] in ("script", "a", "foreignObject")]
    for element in elements:
        for name, value in element.items():
            own = value.startswith(("#", "data:image/png;base64,"))
            assert own if name.endswith("href") else not name.startswith("on"), (name, value)
    assert len(json.dumps(found)) < 100_000
    assert said("write-saxpy", WRONG) == found


def test_the_step_is_the_one_at_the_line(said):
    life = solutions("first-gpu-matmul")["the-game-of-life"]
    found = said("the-game-of-life", life.replace("living == 3", "living == 4"))
    assert found["reason"] == "result"
    line = next(n for n, text in enumerate(life.splitlines(), 1) if "living == 3" in text)
    assert f", line {line}: warp 0 writes after" in found["pictured"]


def test_an_error_is_drawn_in_the_block_in_which_it_is(said):
    found = said("write-saxpy", SAXPY.replace("i < out.size", "i <= out.size"))
    assert found["reason"] == "bounds" and "of block 7" in found["message"]
    assert "block (7, 0)" in found["pictured"]


@pytest.mark.parametrize(
    ("old", "new", "reason", "words"),
    [
        ("+ y[i]", "+ (-y[i] if i == 356 else y[i])", "result", "writes out[352:384]"),
        ("x[i] +", "x[i + (out.size if i == 356 else 0)] +", "bounds", "loads 31 elements of x"),
    ],
)
def test_the_access_that_goes_wrong_is_drawn_with_its_block_and_warp(said, old, new, reason, words):
    """Thread 100 of block 2, in warp 3: neither the first nor the last block, which every run records."""
    found = said("write-saxpy", SAXPY.replace(old, new))
    assert found["reason"] == reason
    assert "block (2, 0)" in found["pictured"] and "What warp 3 touches is dark orange" in found["pictured"]
    assert words in found["pictured"]
    of_element = "The frame marks out[356], of thread 100 of block 2." in found["pictured"]
    assert of_element == (reason == "result")  # what is outside its array is nowhere to be framed


def test_a_race_is_drawn_at_the_element_for_which_threads_race(said):
    blank = solutions("tiled-gemm")["put-the-barrier-back"]
    found = said("put-the-barrier-back", blank.replace("cuda.syncthreads()", "pass"))
    assert found["reason"] == "race"
    assert f"line {found['line']}: " in found["pictured"] and "The frame marks " in found["pictured"]


def test_a_run_on_sizes_that_are_drawn_anew_is_not_drawn(said):
    found = said("write-saxpy", HIDDEN)
    assert "drawn with seed" in found["launch"]
    assert (found["picture"], found["pictured"]) == ("", "")


@pytest.mark.parametrize("text", ["saxpy = None", "x", SAXPY.replace("out[i]", "nothing[i]")])
def test_an_answer_that_never_ran_has_no_picture(said, text):
    assert said("write-saxpy", text)["picture"] == ""


def test_what_cannot_be_drawn_changes_no_verdict(said, monkeypatch):
    expected = said("write-saxpy", WRONG)
    monkeypatch.setattr("labkit.views.base.View.to_svg", lambda *_: 1 / 0)
    assert said("write-saxpy", WRONG) == expected | {"picture": "", "pictured": ""}


def test_a_picture_that_is_too_long_is_left_out(said, monkeypatch):
    monkeypatch.setattr("labkit.grading.picture.MAX_CHARACTERS", 1000)
    assert said("write-saxpy", WRONG)["picture"] == ""
    monkeypatch.undo()
    monkeypatch.setattr("labkit.grading.picture.MAX_ACCESSES", 10)
    assert said("write-saxpy", WRONG)["picture"] == ""


def test_a_solved_answer_is_not_drawn(capsys, monkeypatch):
    monkeypatch.setattr(judging, "draw_picture", lambda *_: pytest.fail("drawn"))
    Judge(setup_texts("first-gpu-matmul"), seed=1)("write-saxpy", SAXPY)
    assert capsys.readouterr().out == "solved\n"
