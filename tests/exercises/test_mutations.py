"""Checks hold against small mistakes: mutations of a solution that change a result are rejected."""

import pytest
from exercise_cells import cell, function
from sampling import WHOLE, sampled

from labkit.checking.mutants import mutations
from labkit.checking.proof import make_other_launches, survives
from labkit.exercises import exercise, exercise_ids

NOT_ASKED = {"share-the-weights": {"inputs - first -> inputs + first"}}  # wrong past whole batches, which it promises


@pytest.mark.parametrize("id", sampled(exercise_ids(), 9))
@pytest.mark.sample(3)
def test_mutations_that_change_a_result_are_rejected(id):
    rules = exercise(id)
    launches = [launch for seed in (1, 2) for launch in make_other_launches(rules, function(id, cell(id)), seed)]
    outcomes = {}
    most = 24 if rules.machine == "gpu" else 8
    for number, mutation in sampled(enumerate(mutations(cell(id))), most):
        kernel = function(id, mutation.source, f"<{id} mutation {number}>")
        outcomes[mutation.what] = survives(rules, kernel, launches, seed=number)
    assert sum(outcome is not None for outcome in outcomes.values()) >= (5 if WHOLE else 2)
    survivors = {what.partition(": ")[2] for what, outcome in outcomes.items() if outcome}
    assert not survivors - NOT_ASKED.get(id, set())
