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

FACTORS = (2.0, 4.0)  # of disturbed values; powers of two, since a product with them is not rounded
SHIFTS = (-1.0, 1.0)  # added to disturbed values

RunDisturbed = Callable[[tuple, Disturbance], Trace | None]  # runs the kernel with these arguments; None: it failed


@dataclass(frozen=True)
class Duty:
    """Limits of a counter, so that an answer cannot avoid what the exercise is about."""

    counter: str  # as in `Budget`
    at_least: int
    why: str  # the reason for the limit, as the verdict gives it
    at_most: float = inf


NO_ARITHMETIC = Duty(PLAIN_FLOPS, at_least=0, why="a copy computes nothing", at_most=0)


def _begin(words):
    """Return words as the beginning of a sentence."""
    return words[0].upper() + words[1:]


@dataclass(frozen=True)
class InputDependence:
    """An input that must influence the result: a second run with another value for it must not give the same result.

    With `is_equal` the other value is equally good, and the second run must give the same result.
    """

    argument: int  # position of the input
    make_other: Callable[[np.random.Generator, np.ndarray], np.ndarray]  # from the input to the other value
    tried: str  # the other value in words that follow "In a second run, with"
    why: str  # advice to the learner
    is_equal: bool = False

    def find_shortfall(self, rng: np.random.Generator, names: list[str], launch: Any, run: RunDisturbed) -> str:
        """Return what the second run shows to be missing as a sentence, "" if the result depends on the input."""
        args = list(launch.args)
        args[self.argument] = self.make_other(rng, args[self.argument])
        trace = run(tuple(args), Disturbance())
        ((position, expected),) = launch.outputs.items()
        is_same = trace is not None and expected.holds(trace.outputs[position])
        if is_same == self.is_equal:
            return ""
        outcome = "as before" if is_same else "wrong"
        return f"In a second run, with {self.tried}, {names[position]} came out {outcome}. {_begin(self.why)}."


@dataclass(frozen=True)
class Dependence:
    """An operation that must influence the result: a second run, in which it is disturbed, must show it.

    `expected_results` makes the results of right answers under a disturbance, one per right way to compute. It is None
    if the disturbance leaves out barriers or fences: then the second run must have an error.
    """

    disturbed: Disturbed  # such as all loads from shared memory
    why: str  # advice to the learner
    expected_results: Callable[[Disturbance], Sequence[Expected]] | None = None

    def find_shortfall(self, rng: np.random.Generator, names: list[str], launch: Any, run: RunDisturbed) -> str:
        """Return what the disturbed run shows to be missing as a sentence, "" if nothing is."""
        disturbance = Disturbance(self.disturbed, float(rng.choice(FACTORS)), float(rng.choice(SHIFTS)))
        trace = run(launch.args, disturbance)
        tried = f"In a second run, with {disturbance.tried}"
        if self.expected_results is None:
            return f"{tried}, nothing went wrong. {_begin(self.why)}." if trace and not trace.errors else ""
        if trace is None:
            return f"{tried}, the kernel broke off. {_begin(self.why)}."
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
            f"and was {output[first]:.6g}. {_begin(self.why)}."
        )
