"""Every exercise accepts its solution and other right answers, and rejects wrong ones for the stated reason."""

import pytest
from answers import cell, function

from labkit.exercises import check, exercise, exercise_ids

VARIANTS = [pytest.param(id, variant, id=f"{id} {variant.what}") for id in exercise_ids() for variant in exercise(id).variants]


@pytest.mark.parametrize("id", exercise_ids())
def test_the_solution_is_accepted(id):
    verdict = check(id, function(id, cell(id)))
    assert verdict.passed, verdict


@pytest.mark.parametrize("id", exercise_ids())
def test_the_blank_is_rejected(id):
    verdict = check(id, function(id, cell(id, "blank")))
    assert not verdict.passed


@pytest.mark.parametrize(("id", "variant"), VARIANTS)
def test_other_answers_get_the_stated_reason(id, variant):
    text = variant.source(cell(id))
    verdict = check(id, function(id, text, f"<{id} {variant.what}>"))
    assert verdict.reason == variant.reason, verdict


@pytest.mark.parametrize("id", exercise_ids())
def test_each_exercise_stands_in_its_chapter_word_for_word(id):
    ...
