"""No error is found in the right answers to exercises; tests/ladder says the same of the ladders' steps."""

import pytest
from exercises.answers import variants
from exercises.exercise_cells import cell, function

import labkit
from labkit.exercises import exercise, exercise_ids


@pytest.mark.parametrize("id", [id for id in exercise_ids() if exercise(id).machine == "gpu"])
@pytest.mark.sample(6)
def test_the_right_answers_to_an_exercise(id):
    rules = exercise(id)
    for text in (cell(id), *(v.source(cell(id)) for v in variants(id) if v.reason == "solved")):
        kernel = function(id, text, f"<{id} {hash(text)}>")
        constants = {name: kernel.py_func.__globals__[name] for name in rules.constants}
        for launch in rules.make_launches(7, **constants):
            trace = labkit.simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes)
            assert not trace.errors
