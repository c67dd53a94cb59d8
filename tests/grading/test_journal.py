"""The journal finds earlier judgements, also after a run that was cut off, and nothing else."""

import pytest

from labkit.grading.journal import FILE, Journal
from labkit.grading.judge import Judgement
from labkit.grading.roster import RosterError

RIGHT, WRONG = Judgement("solved", "Solved."), Judgement("race", "Race on A", 3, "M=1")


def test_judgements_are_known_again(tmp_path):
    journal = Journal(tmp_path, seed=5)
    journal.add("a", RIGHT)
    journal.add("b", WRONG)
    again = Journal(tmp_path)
    assert (again.seed, again.judgement("a"), again.judgement("b"), again.judgement("c")) == (5, RIGHT, WRONG, None)


@pytest.mark.parametrize("cut", range(1, 40, 6))
def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path, cut):
    journal = Journal(tmp_path, seed=5)
    journal.add("a", RIGHT)
    journal.add("b", WRONG)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-cut])
    again = Journal(tmp_path)
    assert (again.seed, again.judgement("a"), again.judgement("b")) == (5, RIGHT, None)
    again.add("b", WRONG)
    assert Journal(tmp_path).judgement("b") == WRONG


def test_another_answer_seed_or_setup_is_another_matter(tmp_path):
    journal = Journal(tmp_path, seed=5)
    answers = {"write-saxpy": "a", "rows-and-columns": "b", "neighbours-together": "c"}
    digest = journal.digest(["setup"], answers, "rows-and-columns")
    assert digest == journal.digest(["setup"], answers | {"neighbours-together": "changed"}, "rows-and-columns")
    others = [
        journal.digest(
            ["setup"], answers | {"write-saxpy": "changed"}, "rows-and-columns"
        ),  # which may define what 02.2 uses
        journal.digest(["setup"], answers | {"rows-and-columns": "changed"}, "rows-and-columns"),
        journal.digest(["another"], answers, "rows-and-columns"),
        Journal(tmp_path, seed=6).digest(["setup"], answers, "rows-and-columns"),
    ]
    assert digest not in others and len(set(others)) == 4


def test_without_a_seed_one_is_drawn_and_kept(tmp_path):
    first = Journal(tmp_path)
    assert Journal(tmp_path).seed == first.seed


def test_the_grades_of_other_work_are_not_overwritten(tmp_path):
    Journal(tmp_path, paths=[tmp_path / "class"])
    Journal(tmp_path, paths=[tmp_path / "class"])
    with pytest.raises(RosterError, match="has the grades of .*class: grade the same again, .* or give another folder"):
        Journal(tmp_path, paths=[tmp_path / "class" / "ada"])
