"""An input must influence the result, or must not: a second run with another value of it tells."""

import numpy as np
import pytest
from cells import kernel_in

from labkit.checking import Exercise, InputDependence, Launch
from labkit.checking.check import judge
from labkit.exercises.problems import expect

THROUGH_ORDER = """
@cuda.jit
def take(x, order, y):
    i = cuda.grid(1)
    y[order[i]] = x[order[i]]
"""
ONE_ORDER = """
@cuda.jit
def take(x, order, y):
    i = cuda.grid(1)
    y[i] = x[i] if order[0] == 63 else 0
"""
NO_ORDER = """
@cuda.jit
def take(x, order, y):
    i = cuda.grid(1)
    y[i] = x[i]
"""


def make_launch(rng, size, is_equal, other):
    x, order = rng.integers(1, 100, size), np.arange(size)[::-1].copy()
    tried = InputDependence(1, lambda rng, order: other(order), "another `order`", "go by `order`", is_equal)
    outputs = {2: expect(x.astype(float))}
    return Launch("numbers", (x, order, np.zeros_like(x)), outputs, (1,), (size,), dependences=(tried,))


def exercise(is_equal, other):
    return Exercise("Take", "Take.", 1, "take", lambda rng, n: make_launch(rng, n, is_equal, other), ((64,),), ())


def swap(order):
    return order[::-1].copy()


def repeat_first(order):
    return np.full_like(order, order[0])


@pytest.mark.parametrize(
    ("source", "is_equal", "other", "outcome"),
    [
        (THROUGH_ORDER, True, swap, ""),
        (ONE_ORDER, True, swap, "In a second run, with another `order`, y came out wrong. Go by `order`."),
        (THROUGH_ORDER, False, repeat_first, ""),
        (NO_ORDER, False, repeat_first, "In a second run, with another `order`, y came out as before. Go by `order`."),
    ],
)
def test_another_value_of_an_input(source, is_equal, other, outcome):
    verdict = judge(exercise(is_equal, other), kernel_in(source, "take"), seed=0)
    assert verdict.reason == ("duty" if outcome else "solved"), verdict
    assert outcome in verdict.message
