"""Random sources: each runs, or is refused by an error of the simulator's own, whatever nonsense it holds.

`FUZZ_MINUTES=10` looks for so long at sources that no run has seen before (`make fuzz`).
"""

import os
import time
import warnings

import pytest
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st
from isolated import Worker
from random_source import mutants, sentences

MINUTES = float(os.environ.get("FUZZ_MINUTES", 0))
EXAMPLES = 80
SOURCES = {"sentences": sentences(), "mutants": mutants()}
LAUNCHES = [
    {},
    {"grid": 2, "block": 33},
    {"grid": (2, 2), "block": (8, 4)},
    {"shared_bytes": 512},
    {"inspect": (0, 0), "record": ((0, 0, 0),)},
]


# What the search has found, by the name of the mistake.
FOUND = {"a complex number of nothing": "y[i] = complex()"}


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.end()


def seeds():
    """A seed for each round, for as long as was asked for; None for the one round that is always the same."""
    if not MINUTES:
        yield None
    end = time.monotonic() + 60 * MINUTES / len(SOURCES)
    while time.monotonic() < end:
        yield time.time_ns()


def is_python(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(text, "<cell>", "exec")
        except SyntaxError:
            return False
    return True


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("kind", SOURCES)
def test_a_random_source_runs_or_is_refused_in_a_sentence(kind, worker):
    @settings(max_examples=EXAMPLES, derandomize=not MINUTES, database=None, suppress_health_check=list(HealthCheck))
    @given(SOURCES[kind], st.sampled_from(LAUNCHES))
    def check(text, launch):
        assume(is_python(text))
        result = worker.outcome(text, **launch)
        assert result["error"] in (None, "KernelError", "LaunchError", "NotFixed"), f"{result}\n{text}"

    for number in seeds():
        (check if number is None else seed(number)(check))()


@pytest.mark.parametrize("mistake", FOUND)
def test_what_was_found_is_refused_in_a_sentence(mistake, worker):
    result = worker.outcome(f"@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n    {FOUND[mistake]}\n")
    assert (result["error"], result["line"]) == ("KernelError", 4), result
