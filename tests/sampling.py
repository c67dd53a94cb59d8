"""Long lists of cases: some of them in `make test`, all of them in `make test-long`."""

import os
from collections.abc import Iterable

WHOLE = "LABKIT_TEST_LONG" in os.environ


def sampled(cases: Iterable, count: int) -> list:
    """So many of the cases, spread evenly and the same in every run; all of them in `make test-long`."""
    cases = list(cases)
    if WHOLE or len(cases) <= count:
        return cases
    return [cases[i * len(cases) // count] for i in range(count)]
