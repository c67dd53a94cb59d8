"""Shortcuts and wrong kernels are refused, right kernels in other clothes are not; one exception is named."""

import pytest
from answers import answers
from exercise_cells import cell, defined
from sampling import sampled

from labkit.checking.check import judge
from labkit.checking.proof import find_wrong_verdict
from labkit.exercises import chapter_of, exercise, exercise_ids, known_ids

REFUSED = {  # right kernels that do not pass: what a disturbed run makes of a sum in shared memory, nobody can tell
    "sums in shared memory",
}
SEEDS = {"gpu": (1, 2, 3), "cpu": (1,), "python": (1, 2, 3)}  # a grade takes three


def cases(kind, count):
    every = [pytest.param(id, case, id=f"{id} {case.what}") for id in known_ids() for case in answers(id, kind)]
    return sampled(every, count)


@pytest.mark.parametrize("kind", ("VARIANTS", "RIGHT", "WRONG", "SHORTCUTS"))
def test_every_answer_fits_the_solution_that_it_edits(kind):
    stale = []
    for id in known_ids():
        for case in answers(id, kind):
            try:
                case.source(cell(id))
            except ValueError as error:
                stale.append(f"{id}: {error}")
    assert not stale, "\n".join(stale)


def verdicts(id, case):
    """Return the verdicts with one seed after the other."""
    rules = exercise(id)
    kernel = defined(id, case.source(cell(id)), f"<{id} {case.what}>").get(rules.function)
    return (judge(rules, kernel, seed) for seed in SEEDS[rules.machine])


@pytest.mark.parametrize(("id", "case"), cases("SHORTCUTS", 30))
@pytest.mark.sample(9)
def test_a_shortcut_is_refused(id, case):
    assert not find_wrong_verdict(case, verdicts(id, case))


@pytest.mark.parametrize(("id", "case"), cases("WRONG", 30))
@pytest.mark.sample(9)
def test_a_wrong_kernel_is_refused(id, case):
    assert not find_wrong_verdict(case, verdicts(id, case))


@pytest.mark.parametrize(("id", "case"), cases("RIGHT", 24))
@pytest.mark.sample(9)
def test_a_right_kernel_is_accepted(id, case):
    for verdict in verdicts(id, case):
        assert verdict.passed == (case.what not in REFUSED), verdict


@pytest.mark.parametrize("seed", range(6))
def test_a_tile_of_which_one_query_sees_one_key_is_missed(seed):
    left_out = "left + KEYS - 1 <= first - window"
    text = cell("tiles-to-skip").replace(left_out, f"{left_out} + 1")
    assert text != cell("tiles-to-skip")
    verdict = judge(exercise("tiles-to-skip"), defined("tiles-to-skip", text, "<a key too late>")["with_sinks"], seed)
    assert (verdict.reason, verdict.launch) == ("result", "70 queries, 97 keys, 9 sinks, a window of 13")


def test_there_are_many_of_each_over_all_chapters():
    chapters = {chapter_of(id) for id in exercise_ids()}
    for kind, least in (("SHORTCUTS", 40), ("WRONG", 60), ("RIGHT", 40)):
        assert {chapter_of(id) for id in exercise_ids() if answers(id, kind)} == chapters
        assert sum(len(answers(id, kind)) for id in exercise_ids()) >= least
    whats = [case.what for id in exercise_ids() for case in answers(id, "RIGHT")]
    assert len(REFUSED) <= 1
    assert all(whats.count(what) == 1 for what in REFUSED)
