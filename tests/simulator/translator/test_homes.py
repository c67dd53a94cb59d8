"""Home regions of variables."""

import ast
from textwrap import dedent

import pytest

from labkit.simulator.translator.homes import Homes

BODY = """
    def kernel(x, n):
        total = 0
        for k in range(n):
            fresh = k
            if fresh > 2:
                inner = fresh
                total += inner
            for j in range(n):
                kept = kept + j if j else 0
        late = total
"""


@pytest.mark.parametrize(
    "name, region",
    [
        ("total", "function"),
        ("x", "function"),
        ("fresh", "loop"),
        ("k", "loop"),
        ("inner", "branch"),
        ("kept", "function"),
        ("late", "function"),
    ],
)
def test_a_variable_lives_in_the_innermost_region_that_holds_its_uses(name, region):
    homes = Homes(ast.parse(dedent(BODY)).body[0])
    assert homes.home(name).startswith(region)


def test_stores_count_arguments_and_updates():
    homes = Homes(ast.parse("def kernel(x, n):\n    n += 1\n    y = z = n\n    z, y = y, z").body[0])
    assert [homes.stores(name) for name in ("x", "n", "y", "z", "other")] == [1, 2, 2, 2, 0]
