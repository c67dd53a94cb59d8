"""No kernel of the book, under another name, is an answer to an exercise that is not its own."""

from functools import cache

import pytest
from book import kernels
from exercise_cells import cell, defined
from sampling import sampled

from labkit.checking.check import judge
from labkit.checking.source import python_function
from labkit.exercises import chapter_of, exercise, exercise_ids


@cache
def book():
    return list(kernels())


def test_the_book_has_many_kernels():
    assert len({(kernel.origin, kernel.name) for kernel in book()}) > 80


@pytest.mark.parametrize("id", sampled(exercise_ids(), 3))
@pytest.mark.sample(1)
def test_no_other_kernel_of_the_book_passes(id):
    """They are tried with their own constants, and with the exercise's where these have the same names."""
    rules = exercise(id)
    own = defined(id, cell(id))
    constants = {name: value for name, value in own.items() if name.isupper() and isinstance(value, int)}
    parameters = python_function(own[rules.function]).__code__.co_argcount
    passed = []
    for kernel in book():
        own_cell = kernel.name == rules.function and kernel.origin == chapter_of(id)
        if own_cell or (kernel.machine, kernel.parameters) != (rules.machine, parameters):
            continue
        for values in ({}, constants):
            found = kernel.named(rules.function)
            if values and not values.keys() & found.keys():
                continue
            found.update(values)
            if judge(rules, found[rules.function], seed=1).passed:
                passed.append((kernel.origin, kernel.name, values))
    assert not passed
