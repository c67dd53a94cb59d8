"""Orders of warps that the first chapter counts in prose."""

import jupytext
import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import places
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")

BARRIER = "        cuda.syncthreads()\n"


@pytest.fixture(scope="module")
def chapter():
    return source(places.PACKAGE.parent / "notebooks", "start-here").read_text(encoding="utf-8")


def wrong_orders(text, rounds):
    """How many orders end with a wrong result, and how many there are."""
    people = np.arange(64, dtype=np.float32)
    explored = labkit.explore(kernel_in(text), 1, 64, people, np.zeros_like(people), rounds)
    wanted = np.roll(people, -rounds)
    wrong = [ending.orders for ending in explored.outcomes if not np.array_equal(ending.outputs[1], wanted)]
    return sum(wrong), explored.orders


def test_orders_without_a_barrier(chapter):
    cells = [cell.source for cell in jupytext.reads(chapter, fmt="md:myst").cells]
    (hasty,) = (cell for cell in cells if "def hasty" in cell)
    assert wrong_orders(hasty, 1) == (2, 3) and "two of three orders end with a wrong result" in chapter
    (pass_on,) = (cell for cell in cells if "def pass_on" in cell and "import" not in cell)
    first, second, rest = pass_on.split(BARRIER)
    assert wrong_orders(f"{first}{BARRIER}{second}{rest}", 2) == (2, 3)
    assert "run two rounds: 2 of 3 orders end with a wrong result" in chapter
