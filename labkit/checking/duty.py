"""Duties: what an answer must use, by a count or by what a disturbed run makes of its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from labkit.checking.budget import PLAIN_FLOPS
from labkit.ladder import Expected
from labkit.simulator.disturbance import Disturbance, Disturbed
from labkit.trace import Trace

FACTORS = (2.0, 4.0)  # powers of two: to multiply by them rounds nothing
SHIFTS = (-1.0, 1.0)

Run = Callable[[tuple, Disturbance], Trace | None]  # of the kernel, with these arguments; no trace if it breaks off


@dataclass(frozen=True)
class Duty:
    """At least `at_least` of a counter, and at most `at_most`, so that no other way leads past the exercise.

    `why` says what for.
    """

    counter: str
    at_least: int
    why: str
    at_most: float = inf


COPY_ALONE = Duty(PLAIN_FLOPS, 0, "a copy computes nothing", 0)


@dataclass(frozen=True)
class Reliance:
    """An input on which the result must depend: a second run, with `other` in its place, must not give the result.

    `tried` says in a few words what the other one is, `why` what to do.
    """

    argument: int
    other: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    tried: str
    why: str

    def shortfall(self, rng: np.random.Generator, names: list[str], launch: Any, run: Run) -> str:
        """What the second run shows to be missing, in a sentence; nothing where all is as it must be."""
        args = list(launch.args)
        args[self.argument] = self.other(rng, args[self.argument])
        trace = run(tuple(args), Disturbance())
        ((position, expected),) = launch.outputs.items()
        if trace is None or not (np.abs(trace.outputs[position] - expected.value) <= expected.bound).all():
            return ""
        return f"In a second run, with {self.tried}, {names[position]} came out as before: {self.why}."


@dataclass(frozen=True)
class Dependence:
    """What the result must depend on: a second run, in which `disturbed` goes otherwise, must show it.

    Without barriers or fences that run must have an error. Otherwise the output must be one of the `results` of the
    disturbance, which are as many as there are right ways. `why` says what to do.
    """

    disturbed: Disturbed
    why: str
    results: Callable[[Disturbance], Sequence[Expected]] | None = None

    def shortfall(self, rng: np.random.Generator, names: list[str], launch: Any, run: Run) -> str:
        """What the disturbed run shows to be missing, in a sentence; nothing where all is as it must be."""
        disturbance = Disturbance(self.disturbed, float(rng.choice(FACTORS)), float(rng.choice(SHIFTS)))
        trace = run(launch.args, disturbance)
        tried = f"In a second run, with {disturbance.tried}"
        if self.results is None:
            return f"{tried}, nothing went wrong: {self.why}." if trace and not trace.errors else ""
        if trace is None:
            return f"{tried}, the kernel broke off: {self.why}."
        (position,) = launch.outputs
        output, results = trace.outputs[position].astype(np.float64), self.results(disturbance)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = [~(np.abs(output - result.value) <= result.bound) for result in results]
        if not all(mask.any() for mask in wrong):
            return ""
        at = np.unravel_index(np.argmax(wrong[0]), output.shape)
        index = ", ".join(str(int(i)) for i in at)
        return (
            f"{tried}, {names[position]}[{index}] should come out as {results[0].value[at]:.6g} "
            f"and was {output[at]:.6g}: {self.why}."
        )
