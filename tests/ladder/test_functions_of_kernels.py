"""A step's page shows the functions that its kernels call: their copies have other constants, not other functions."""

import sys

import pytest
from launches import launches_of

from labkit import ladder
from labkit.rebinding import names_used_by

SLOTS = {"library", "interface"}  # rooms of kernels that are made for other functions: an epilogue, a step for a batch
STEPS = [step for each in ladder.every_ladder() if each.operation != "loops" for step in each]


def replaced(function):
    """The names under which a function, or one that it calls, finds another function than its file has there."""
    written = vars(sys.modules[function.__module__])
    for name, value in names_used_by(function).items():
        if hasattr(value, "py_func"):
            if value.py_func.__code__ is not written[name].py_func.__code__:
                yield f"{function.__name__}: {name}"
            yield from replaced(value.py_func)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
def test_a_kernel_calls_the_functions_that_its_page_shows(step):
    for problem, format, launch in launches_of(step, list(step.examples)):
        kernel = launch.kernel.py_func
        if not SLOTS & {*kernel.__module__.split(".")}:
            assert not list(replaced(kernel)), f"for {problem} in {format}"
