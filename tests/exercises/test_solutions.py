"""Every exercise accepts its solution and other right answers, and gives wrong ones the stated reason."""

import pytest
from answers import variants
from exercise_cells import cell, function, prose
from sampling import WHOLE, sampled

from labkit.checking.check import judge
from labkit.checking.proof import find_wrong_verdict
from labkit.exercises import chapter_of, check, exercise, exercise_ids, known_ids
from labkit.exercises.contents import book_contents

CHAPTERS = [chapter.slug for chapter in book_contents().chapters if "00" < chapter.number < "90"]  # the first has one
VARIANTS = [pytest.param(id, variant, id=f"{id} {variant.what}") for id in known_ids() for variant in variants(id)]


@pytest.mark.parametrize("id", known_ids())
@pytest.mark.sample(6)
def test_the_solution_is_accepted(id):
    verdict = check(id, function(id, cell(id)), seed=1)
    assert verdict.passed, verdict


@pytest.mark.parametrize("id", exercise_ids())
def test_the_blank_is_rejected(id):
    verdict = judge(exercise(id), function(id, cell(id, "blank")), seed=1)
    assert not verdict.passed


@pytest.mark.parametrize(("id", "variant"), sampled(VARIANTS, 100))
@pytest.mark.sample(16)
def test_other_answers_get_the_stated_reason(id, variant):
    text = variant.source(cell(id))
    verdict = judge(exercise(id), function(id, text, f"<{id} {variant.what}>"), seed=2)
    assert not find_wrong_verdict(variant, [verdict])


@pytest.mark.parametrize("id", sampled(known_ids(), 12))
@pytest.mark.sample(5)
def test_right_answers_are_accepted_whatever_sizes_are_drawn(id):
    texts = [cell(id), *(variant.source(cell(id)) for variant in variants(id) if variant.reason == "solved")]
    for seed in range(3, 7 if WHOLE else 5):
        for text in texts:
            verdict = check(id, function(id, text, f"<{id} {hash(text)}>"), seed)
            assert verdict.passed, verdict


@pytest.mark.sample(8)
@pytest.mark.parametrize("id", exercise_ids())
def test_every_check_runs_the_fixed_sizes_and_draws_others(id):
    rules = exercise(id)
    runs = [
        [launch.label for launch in rules.make_launches(seed, **dict.fromkeys(rules.constants, 16))]
        for seed in range(5)
    ]
    fixed = len(rules.sizes)
    assert {tuple(labels[:fixed]) for labels in runs} == {tuple(runs[0][:fixed])}
    drawn = [label for labels in runs for label in labels[fixed:]]
    assert len(set(drawn)) > len(drawn) / 2
    assert all("drawn with seed" in label for label in drawn)


@pytest.mark.parametrize("id", exercise_ids())
def test_the_chapter_gives_the_task_as_the_exercise_has_it(id):
    text = prose(chapter_of(id))
    rules = exercise(id)
    points = "1 point" if rules.points == 1 else f"{rules.points} points"
    assert f"### Exercise {rules.number} · {rules.title} ({points})" in text
    assert rules.task in text


@pytest.mark.parametrize("chapter", sorted({chapter_of(id) for id in exercise_ids()}))
def test_no_two_answers_of_a_chapter_share_a_name(chapter):
    names = [exercise(id).function for id in exercise_ids(chapter)]
    assert len(set(names)) == len(names)


TWO_EXERCISES = "tensor-cores feeding-tensor-cores tensor-core-convolution decoding-and-few-bits".split()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_exercises(chapter):
    # others change kernels in playgrounds
    fewer = dict.fromkeys(TWO_EXERCISES, 2) | {"hopper-gemm": 1}
    assert len(exercise_ids(chapter)) >= fewer.get(chapter, 3)
