"""Checks hold against small mistakes: mutations of a solution that change a result are rejected."""

import numpy as np
import pytest
from exercise_cells import cell, function
from mutate import mutations
from sampling import WHOLE, sampled

import labkit
from labkit.checking.check import judge
from labkit.checking.restricted_python import run_calls
from labkit.checking.source import python_function
from labkit.exercises import exercise, exercise_ids
from labkit.simulator.errors import SimulatorError


def other_launches(exercise, kernel, seed):
    """Launches of other shapes, on other numbers than the check's."""
    rng = np.random.default_rng([seed, 20])
    most = np.minimum(np.abs(exercise.sizes).astype(int), 60 if exercise.machine == "gpu" else 12)
    constants = {name: python_function(kernel).__globals__[name] for name in exercise.constants}
    most = np.maximum(most, 40) if exercise.machine == "python" else most
    return [exercise.make_launch(rng, *map(int, size), **constants) for size in rng.integers(2, most + 8)]


def gives_wrong_results(exercise, kernel, launches):
    for launch in launches:
        if exercise.machine == "python":
            if wrong_answers(kernel, launch):
                return True
            continue
        try:
            outputs = run(exercise, kernel, launch)
        except (SimulatorError, IndexError, NameError, TypeError, ValueError, ZeroDivisionError):
            return True
        for position, expected in launch.outputs.items():
            if not expected.holds(outputs[position]):
                return True
    return False


def wrong_answers(function, questions):
    try:
        return questions.find_mistake(run_calls(function, questions.calls))
    except SimulatorError as error:  # or a loop without end
        return str(error)


def run(exercise, kernel, launch):
    if exercise.machine == "gpu":
        trace = labkit.simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes)
        return trace.outputs
    copies = [np.copy(value) for value in launch.args]
    with np.errstate(all="ignore"):
        python_function(kernel)(*copies)
    return copies


@pytest.mark.parametrize("id", sampled(exercise_ids(), 9))
@pytest.mark.sample(6)
def test_mutations_that_change_a_result_are_rejected(id):
    rules = exercise(id)
    wrong, survivors = 0, []
    most = 24 if rules.machine == "gpu" else 8
    for number, mutation in sampled(enumerate(mutations(cell(id))), most):
        kernel = function(id, mutation.source, f"<{id} mutation {number}>")
        launches = [launch for seed in (1, 2) for launch in other_launches(rules, kernel, seed)]
        if not gives_wrong_results(rules, kernel, launches):
            continue
        wrong += 1
        if judge(rules, kernel, seed=number).passed:
            survivors.append(mutation.what)
    assert wrong >= (5 if WHOLE else 2)
    assert not survivors
