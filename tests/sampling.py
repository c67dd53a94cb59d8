"""Long lists of cases: some of them in `make test`, all of them in `make test-long`."""

import os
from collections import defaultdict
from collections.abc import Iterable

WHOLE = "LABKIT_TEST_LONG" in os.environ


def sampled(cases: Iterable, count: int) -> list:
    """So many of the cases, spread evenly and the same in every run; all of them in `make test-long`."""
    cases = list(cases)
    if WHOLE or len(cases) <= count:
        return cases
    return [cases[i * len(cases) // count] for i in range(count)]


def beyond_sample(items: list) -> set:
    """pytest's items that `make test` leaves out: of each test with the marker `sample(count)` all but so many.

    Items that ask for a GPU are sampled apart from those that run anywhere.
    """
    cases = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sample")
        if marker:
            on_gpu = any("gpu" in needs.args for needs in item.iter_markers("needs"))
            cases[item.path, item.originalname, on_gpu, *marker.args].append(item)
    return {item for (*_, count), found in cases.items() for item in {*found} - {*sampled(found, count)}}
