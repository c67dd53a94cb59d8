"""Every usual mistake that an exercise knows is equal to the result of a wrong kernel, and is named by its verdict."""

import pytest
from answers import answers
from exercise_cells import cell, function
from sampling import sampled

from labkit.checking.check import judge, read_constants
from labkit.checking.proof import find_telling_mistakes, find_unproven_mistakes, find_wrong_mistake, make_launches
from labkit.checking.source import python_function
from labkit.exercises import exercise, exercise_ids, known_ids

PYTHON = [id for id in exercise_ids() if exercise(id).machine == "python"]
GPU_OR_CPU = [id for id in known_ids() if exercise(id).machine != "python"]


def answers_with_mistakes(id):
    return [answer for kind in ("VARIANTS", "WRONG") for answer in answers(id, kind) if answer.mistake]


CASES = [pytest.param(id, case, id=f"{id} {case.what}") for id in GPU_OR_CPU for case in answers_with_mistakes(id)]


@pytest.mark.parametrize(("id", "answer"), sampled(CASES, 40))
@pytest.mark.sample(8)
def test_a_mistake_is_the_result_of_its_wrong_kernel(id, answer):
    kernel = function(id, answer.source(cell(id)), f"<{id} {answer.what}>")
    assert not find_wrong_mistake(exercise(id), kernel, answer)


@pytest.mark.sample(8)
@pytest.mark.parametrize("id", GPU_OR_CPU)
def test_every_mistake_has_a_wrong_kernel_and_differs_from_the_others(id):
    launches = make_launches(exercise(id), function(id, cell(id)))
    assert not [*find_unproven_mistakes(launches, answers_with_mistakes(id))]


@pytest.mark.parametrize("id", PYTHON)
def test_every_mistake_of_a_plain_function_is_named_where_it_is_made(id):
    named = set()
    for answer in answers_with_mistakes(id):
        verdict = judge(exercise(id), function(id, answer.source(cell(id))), seed=1)
        assert verdict.cause == answer.mistake and f"\n- The answers came out as if {verdict.cause}." in verdict.message
        named.add(answer.mistake)
    assert named == {cause for questions in exercise(id).make_launches(1) for cause, *_ in questions.mistakes}


@pytest.mark.sample(8)
@pytest.mark.parametrize("id", [id for id in GPU_OR_CPU if id in exercise_ids()])
def test_no_mistake_tells_the_solution(id):
    launches = make_launches(exercise(id), function(id, cell(id)))
    assert not [*find_telling_mistakes(launches, cell(id), cell(id, "blank"))]


@pytest.mark.sample(8)
@pytest.mark.parametrize("id", GPU_OR_CPU)
def test_no_cause_tells_a_size_that_is_drawn(id):
    """It is told of runs whose sizes only the grader knows."""
    kernel = function(id, cell(id))
    constants = read_constants(exercise(id), python_function(kernel))
    launches = [launch for seed in range(3) for launch in exercise(id).make_launches(seed, **constants)]
    causes = {mistake.cause for launch in launches for mistake in launch.mistakes}
    assert causes <= {answer.mistake for answer in answers_with_mistakes(id)}
