"""A verdict is read once: its sentences are short, and a second paragraph is a list."""

import re

import pytest
from answers import answers
from exercise_cells import cell, defined, function
from sampling import sampled

from labkit.checking import Questions, budget
from labkit.checking.check import judge, read_constants
from labkit.checking.source import python_function
from labkit.exercises import exercise, exercise_ids

MOST_WORDS = 35  # of a sentence; code and an index count as one
NAMED = "".join(f"(?<!{name} )" for name in ("thread", "block", "line", "lane", "warp", "tile"))  # as in "block 1 has"
ONE_OF_MANY = re.compile(
    NAMED + r"(?<![\dx.,] )(?<![\d.,=])\b1 (?!is |was |has |as |ms|miss |plus |times |minus )[A-Za-z]+s\b"
)
CASES = [
    pytest.param(id, case, id=f"{id} {case.what}")
    for id in exercise_ids()
    for kind in ("VARIANTS", "WRONG", "SHORTCUTS")
    for case in answers(id, kind)
    if case.reason != "solved"
]
RESULTS = [case for case in CASES if case.values[1].reason == "result" and exercise(case.values[0]).machine != "python"]


@pytest.mark.parametrize(("id", "case"), sampled(CASES, 30))
@pytest.mark.sample(8)
def test_no_sentence_of_a_verdict_is_long(id, case):
    rules = exercise(id)
    kernel = defined(id, case.source(cell(id)), f"<{id} {case.what}>").get(rules.function)
    verdict = judge(rules, kernel, 2)
    if verdict.passed:  # as a few wrong kernels do with one seed
        return
    message = verdict.message
    text = re.sub(r"`[^`]*`|\([\d, -]+\)|\[[\d, -]+\]", "code", message)
    sentences = re.split(r"(?<=[.?!;])\s+|\n", text)
    assert max(len(sentence.split()) for sentence in sentences) <= MOST_WORDS, message
    assert len(re.findall(r"[.?!](?= |$)", text.split("\n")[0])) <= 2, message
    assert not ONE_OF_MANY.search(message), message


@pytest.mark.parametrize(("id", "case"), sampled(RESULTS, 20))
@pytest.mark.sample(5)
def test_a_wrong_result_is_told_in_two_sentences_and_a_list(id, case):
    rules = exercise(id)
    kernel = defined(id, case.source(cell(id)), f"<{id} {case.what}>").get(rules.function)
    first, *items = judge(rules, kernel, 2).message.splitlines()
    assert len(re.findall(r"\.(?= |$)", first)) <= 2
    assert all(item.startswith("- ") for item in items)


@pytest.mark.sample(5)
@pytest.mark.parametrize("id", exercise_ids())
def test_one_thing_is_told_as_one_in_all_that_a_launch_says(id):
    rules = exercise(id)
    constants = read_constants(rules, python_function(function(id, cell(id))))
    for seed in range(10):
        for launch in rules.make_launches(seed, **constants):
            assert not [text for text in texts_of(launch) if ONE_OF_MANY.search(text)]


def texts_of(launch):
    yield launch.label
    if isinstance(launch, Questions):
        yield from (text for cause, _, *cure in launch.mistakes for text in (cause, *cure))
        return
    yield from (budget.formula for budget in launch.budgets)
    yield from (one.why for one in (*launch.duties, *launch.dependences))
    yield from (text for mistake in launch.mistakes for text in (mistake.cause, mistake.cure))


COUNTERS = [value for name, value in vars(budget).items() if name.isupper() and isinstance(value, str)]


@pytest.mark.parametrize("counter", [*COUNTERS, *budget.SITE_COUNTERS])
def test_one_is_counted_as_one(counter):
    words = budget.count_words(1, counter)
    assert not ONE_OF_MANY.search(words) and budget.limit_words(1, counter).endswith(" is")
    assert budget.count_words(2, counter).endswith(counter)


def test_counters_of_one_are_words():
    assert budget.count_words(1, "misses of the L1 cache") == "1 miss of the L1 cache"
    assert budget.count_words(1, budget.FILLING_THREADS).startswith("1 thread that fills shared memory")
    assert budget.count_words(25, budget.EXPOSED_LOADS) == "25% of the shared loads are made while no copy is in flight"
