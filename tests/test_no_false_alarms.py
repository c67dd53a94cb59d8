"""No error is found in any kernel of the book that is right: ladder steps and solutions."""

import pytest
from exercises.answers import cell, function

import labkit
from labkit import gemm
from labkit.exercises import exercise, exercise_ids
from labkit.gemm.problem import Problem


@pytest.mark.parametrize("size", [(37, 29, 41), (64, 48, 80), (5, 70, 3)], ids=str)
@pytest.mark.parametrize("step", gemm.ladder("fp32"), ids=lambda step: step.name)
def test_the_steps_of_the_ladder(step, size):
    M, N, _ = size
    operands = Problem(*size).operands()
    trace = labkit.simulate(step.kernel, *step.geometry(M, N), *operands, shared_bytes=step.shared_bytes)
    assert not trace.errors


@pytest.mark.parametrize("id", [id for id in exercise_ids() if exercise(id).machine == "gpu"])
def test_the_right_answers_to_an_exercise(id):
    rules = exercise(id)
    for text in (cell(id), *(v.source(cell(id)) for v in rules.variants if v.reason == "solved")):
        kernel = function(id, text, f"<{id} {hash(text)}>")
        constants = {name: kernel.py_func.__globals__[name] for name in rules.constants}
        for launch in rules.launches(7, **constants):
            trace = labkit.simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes)
            assert not trace.errors
