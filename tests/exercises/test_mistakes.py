"""Every usual mistake that an exercise knows is equal to the result of a wrong kernel, and is named by its verdict."""

from itertools import combinations

import numpy as np
import pytest
from answers import answers
from exercise_cells import cell, function
from sampling import sampled

from labkit.checking.check import read_constants
from labkit.checking.mistake import explains, find_mistake
from labkit.checking.source import python_function
from labkit.exercises import check, exercise, exercise_ids, known_ids
from labkit.loops import trace as trace_loop
from labkit.simulator.run import simulate

PYTHON = [id for id in exercise_ids() if exercise(id).machine == "python"]
GPU_OR_CPU = [id for id in known_ids() if exercise(id).machine != "python"]


def answers_with_mistakes(id):
    return [answer for kind in ("VARIANTS", "WRONG") for answer in answers(id, kind) if answer.mistake]


CASES = [pytest.param(id, case, id=f"{id} {case.what}") for id in GPU_OR_CPU for case in answers_with_mistakes(id)]


def launches_of(id, kernel):
    rules = exercise(id)
    return list(rules.make_launches(1, **read_constants(rules, python_function(kernel))))


def run(id, kernel, launch):
    if exercise(id).machine == "cpu":
        return trace_loop(kernel, *launch.args)
    return simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes)


@pytest.mark.parametrize(("id", "answer"), sampled(CASES, 40))
@pytest.mark.sample(20)
def test_a_mistake_is_the_result_of_its_wrong_kernel(id, answer):
    kernel = function(id, answer.source(cell(id)), f"<{id} {answer.what}>")
    verdict = check(id, kernel, seed=1)
    assert f" came out as if {verdict.cause}." in verdict.message, verdict
    named = {verdict.cause}
    for launch in launches_of(id, kernel):
        trace = run(id, kernel, launch)
        made = [mistake for mistake in launch.mistakes if mistake.cause == answer.mistake]
        right = all(expected.holds(trace.outputs[position]) for position, expected in launch.outputs.items())
        found = None if right else find_mistake(launch.mistakes, launch.outputs, trace.outputs)
        named |= {found.cause} if found else set()
        if made:
            assert any(explains(mistake, launch.outputs, trace.outputs) for mistake in made), launch.label
        else:
            assert right or any(finding.kind != "unwritten" for finding in trace.errors), launch.label
    assert answer.mistake in named  # where several explain a result, the first is named


@pytest.mark.parametrize("id", GPU_OR_CPU)
def test_every_mistake_has_a_wrong_kernel_and_differs_from_the_others(id):
    launches = launches_of(id, function(id, cell(id)))
    causes = {mistake.cause for launch in launches for mistake in launch.mistakes}
    assert causes == {answer.mistake for answer in answers_with_mistakes(id)}
    results = {cause: [_results(launch, cause) for launch in launches] for cause in ("", *sorted(causes))}
    for one, other in combinations(results, 2):
        pairs = [pair for pair in zip(results[one], results[other], strict=True) if None not in pair]
        assert any(not _agree(*pair) for pair in pairs) or len(pairs) < len(launches), (one, other)


def _results(launch, cause):
    """Return the outputs that a mistake makes, the right ones for the cause ""; None if the launch lacks it."""
    if not cause:
        return launch.outputs
    made = next((mistake for mistake in launch.mistakes if mistake.cause == cause), None)
    return made and {**launch.outputs, **made.make_outputs()}


def _agree(results, others):
    pairs = [(results[position], others[position]) for position in results]
    with np.errstate(invalid="ignore"):
        return all(
            ((one.value == other.value) | (np.abs(one.value - other.value) <= one.bound + other.bound)).all()
            for one, other in pairs
        )


@pytest.mark.parametrize("id", PYTHON)
def test_every_mistake_of_a_plain_function_is_named_where_it_is_made(id):
    named = set()
    for answer in answers_with_mistakes(id):
        verdict = check(id, function(id, answer.source(cell(id))), seed=1)
        assert verdict.cause == answer.mistake and verdict.message.endswith(f"as if {verdict.cause}."), verdict
        named.add(answer.mistake)
    assert named == {cause for questions in launches_of(id, function(id, cell(id))) for cause, _ in questions.mistakes}


@pytest.mark.parametrize("id", [id for id in GPU_OR_CPU if id in exercise_ids()])
def test_no_mistake_tells_the_solution(id):
    lines = {line.strip() for line in cell(id).splitlines()} - {line.strip() for line in cell(id, "blank").splitlines()}
    launches = launches_of(id, function(id, cell(id)))
    causes = {mistake.cause for launch in launches for mistake in launch.mistakes}
    assert not [cause for cause in causes for line in lines if len(line) > 8 and line in cause]
