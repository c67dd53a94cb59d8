"""The launches that a step makes for any of its problems, found without memory and without a launch."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import count
from math import exp, log, prod
from random import Random

import numpy as np
from argument_types import argument_type

from labkit.arrays.views import OperandSlot, View
from labkit.arrays.workspace import DUMMY_ADDRESS, CountingWorkspace
from labkit.formats import Format
from labkit.ladder import Launch, Problem, Step
from labkit.layout import c_strides

TRIES = 20  # of sizes, for each problem that is wanted
LARGE = 2**33  # elements of all operands together


def launches_of(step: Step, problems: list[Problem]) -> Iterator[tuple[Problem, Format, Launch]]:
    """What a step launches on a GPU, in each of its formats, for those of the problems that it takes."""
    for format in step.formats:
        for problem in problems:
            with suppress(ValueError):
                operands = _operands(step, problem, format)
                for launch in step.launches(*operands, format=format, workspace=CountingWorkspace()):
                    if launch.grid != ():
                        yield problem, format, launch


@cache
def stated_launches(step: Step) -> list[tuple[Problem, Format, Launch]]:
    """What a step launches for the problems that it states."""
    return [*launches_of(step, stated(step))]


def stated(step: Step) -> list[Problem]:
    """The problems that a step and its ladder state: small ones, timed ones, and those of the largest blocks."""
    timed = step.benched if step.examples[-1].shapes else []  # operands whose shapes are not told would take memory
    return [*step.examples, *timed, *step.largest]


def drawn(step: Step, number: int) -> list[Problem]:
    """Random problems for a step: some of their sizes are stated ones, and others are up to four times as large."""
    random, known, found = Random(step.path), stated(step), []
    for _ in range(TRIES * number if known[-1].shapes else 0):
        base = random.choice(known)
        alike = [one for one in known if type(one) is type(base)]
        sizes = {field.name: [getattr(one, field.name) for one in alike] for field in fields(base)}
        with suppress(ValueError):
            problem = type(base)(**{name: _size(random, values) for name, values in sizes.items()})
            if not problem.misfit(getattr(step.module, "SUPPORTED", {})) and _elements(problem) <= LARGE:
                found.append(problem)
        if len(found) == number:
            break
    return found


def threads_of(launch: Launch) -> int:
    """Of a block."""
    return prod(launch.block) if isinstance(launch.block, tuple) else launch.block


def types_of(launch: Launch) -> tuple:
    """numba's types of a launch's arguments."""
    return tuple(map(argument_type, launch.arguments))


def bounds_of(launch: Launch) -> int | None:
    """The threads of a block for which its kernel is compiled, if it states them."""
    bounds = launch.kernel.options.get("launch_bounds")
    return bounds[0] if isinstance(bounds, tuple) else bounds


def _operands(step, problem, format):
    """Operands of a problem that are nowhere, in the order of an example's and of their types."""
    if not problem.shapes:
        return problem.operands(format)
    example = next(one for one in step.examples if one.shapes.keys() == problem.shapes.keys())
    shapes, places = iter(problem.shapes.values()), count()
    return [_operand(X, problem, shapes, places) for X in _example_operands(example, format)]


@cache
def _example_operands(example, format):
    return example.operands(format)


def _operand(X, problem, shapes, places):
    if isinstance(X, np.ndarray):
        shape, place = next(shapes), next(places)
        strides = tuple(stride * X.itemsize for stride in c_strides(shape))
        return View(OperandSlot(place), shape, strides, X.dtype, DUMMY_ADDRESS * (1 + place))
    return problem if isinstance(X, Problem) else X


def _size(random, values):
    size = random.choice(values)
    if type(size) is not int or random.random() < 0.5:
        return size
    most = max(value for value in values if type(value) is int)
    return round(exp(random.uniform(0, log(4 * most + 4))))


def _elements(problem):
    return sum(map(prod, problem.shapes.values()))
