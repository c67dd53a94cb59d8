"""A verdict is read once: its sentences are short, and a second paragraph is a list."""

import re

import pytest
from answers import answers
from exercise_cells import cell, defined
from sampling import sampled

from labkit.checking.check import judge
from labkit.exercises import exercise, exercise_ids

MOST_WORDS = 45  # of a sentence; code counts as one
CASES = [
    pytest.param(id, case, id=f"{id} {case.what}")
    for id in exercise_ids()
    for kind in ("VARIANTS", "WRONG", "SHORTCUTS")
    for case in answers(id, kind)
    if case.reason != "solved"
]
RESULTS = [case for case in CASES if case.values[1].reason == "result" and exercise(case.values[0]).machine != "python"]


@pytest.mark.parametrize(("id", "case"), sampled(CASES, 30))
@pytest.mark.sample(15)
def test_no_sentence_of_a_verdict_is_long(id, case):
    rules = exercise(id)
    kernel = defined(id, case.source(cell(id)), f"<{id} {case.what}>").get(rules.function)
    message = judge(rules, kernel, 2).message
    sentences = re.split(r"(?<=[.?!:])\s+|\n", re.sub("`[^`]*`", "code", message))
    assert max(len(sentence.split()) for sentence in sentences) <= MOST_WORDS, message


@pytest.mark.parametrize(("id", "case"), sampled(RESULTS, 20))
@pytest.mark.sample(10)
def test_a_wrong_result_is_told_in_two_sentences_and_a_list(id, case):
    rules = exercise(id)
    kernel = defined(id, case.source(cell(id)), f"<{id} {case.what}>").get(rules.function)
    first, *items = judge(rules, kernel, 2).message.splitlines()
    assert len(re.findall(r"\.(?= |$)", first)) <= 2
    assert all(item.startswith("- ") for item in items)
