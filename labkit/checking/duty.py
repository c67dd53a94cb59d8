"""Duties and dependences: what an answer must use, shown by a count or by the results of a disturbed run."""

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

RunDisturbed = Callable[[tuple, Disturbance], Trace | None]  # runs the kernel with these arguments; None: it failed


@dataclass(frozen=True)
class Duty:
    """Lower limit of a counter, so that an answer cannot avoid what the exercise is about.

    Attributes
    ----------
    counter
        As in `Budget`.
    at_least, at_most
        The count must lie between these, both included.
    why
        The reason for the limit, as the verdict gives it.
    """

    counter: str
    at_least: int
    why: str
    at_most: float = inf


NO_ARITHMETIC = Duty(PLAIN_FLOPS, 0, "a copy computes nothing", 0)


@dataclass(frozen=True)
class InputDependence:
    """An input that must influence the result: a second run with another value for it must not give the same result.

    Attributes
    ----------
    argument
        Position of the input.
    make_other
        Makes the other value from a random generator and the input.
    tried
        The other value in a few words, which follow "In a second run, with".
    why
        Advice to the learner.
    """

    argument: int
    make_other: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    tried: str
    why: str

    def find_shortfall(self, rng: np.random.Generator, names: list[str], launch: Any, run: RunDisturbed) -> str:
        """Return what the second run shows to be missing as a sentence, "" if the result depends on the input."""
        args = list(launch.args)
        args[self.argument] = self.make_other(rng, args[self.argument])
        trace = run(tuple(args), Disturbance())
        ((position, expected),) = launch.outputs.items()
        if trace is None or not (np.abs(trace.outputs[position] - expected.value) <= expected.bound).all():
            return ""
        return f"In a second run, with {self.tried}, {names[position]} came out as before: {self.why}."


@dataclass(frozen=True)
class Dependence:
    """An operation that must influence the result: a second run, in which it is disturbed, must show it.

    Attributes
    ----------
    disturbed
        The operation that the second run disturbs, such as all loads from shared memory.
    why
        Advice to the learner.
    expected_results
        Makes the results that right answers have under a disturbance: one per right way to compute. None where the
        operation is left out (barriers, fences), and the second run must have an error.
    """

    disturbed: Disturbed
    why: str
    expected_results: Callable[[Disturbance], Sequence[Expected]] | None = None

    def find_shortfall(self, rng: np.random.Generator, names: list[str], launch: Any, run: RunDisturbed) -> str:
        """Return what the disturbed run shows to be missing as a sentence, "" if nothing is."""
        disturbance = Disturbance(self.disturbed, float(rng.choice(FACTORS)), float(rng.choice(SHIFTS)))
        trace = run(launch.args, disturbance)
        tried = f"In a second run, with {disturbance.tried}"
        if self.expected_results is None:
            return f"{tried}, nothing went wrong: {self.why}." if trace and not trace.errors else ""
        if trace is None:
            return f"{tried}, the kernel broke off: {self.why}."
        (position,) = launch.outputs
        output, results = trace.outputs[position].astype(np.float64), self.expected_results(disturbance)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = [~(np.abs(output - result.value) <= result.bound) for result in results]
        if not all(mask.any() for mask in wrong):
            return ""
        first = np.unravel_index(np.argmax(wrong[0]), output.shape)
        index = ", ".join(str(int(i)) for i in first)
        return (
            f"{tried}, {names[position]}[{index}] should come out as {results[0].value[first]:.6g} "
            f"and was {output[first]:.6g}: {self.why}."
        )
