"""Duties: what an answer must use, by a count or by what a disturbed run makes of its results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from labkit.simulator.disturbance import BARRIERS, COPIES, FENCES, PRODUCTS, SHARED_LOADS, Disturbance
from labkit.trace import Trace

FEW = 8  # outputs, of which it cannot be told whether they grew by one factor
ALIKE = 1e-3
FACTORS = (0.25, 0.5, 2.0, 4.0)  # powers of two: a disturbed run rounds as the other does

_TRIED = {
    SHARED_LOADS: "all that is loaded from shared memory times {factor:g}",
    COPIES: "all that asynchronous copies bring times {factor:g}",
    PRODUCTS: "every product of the tensor cores times {factor:g}",
    BARRIERS: "no `cuda.syncthreads()`",
    FENCES: "no `cuda.threadfence()`",
}


@dataclass(frozen=True)
class Duty:
    """At least `at_least` of a counter, so that no other way leads past the exercise; `why` says what for."""

    counter: str
    at_least: int
    why: str


@dataclass(frozen=True)
class Dependence:
    """What the result must depend on: a second run, in which `disturbed` goes otherwise, must show it.

    Without barriers or fences that run must have an error. Otherwise each output must come out times the factor to
    one of the `powers`; `besides` is the part of an output, by its position, that must stay. `why` says what to do.
    """

    disturbed: str
    why: str
    powers: tuple[int, ...] = ()
    besides: Mapping[int, Float[np.ndarray, "..."]] = field(default_factory=dict)

    def disturbance(self, rng: np.random.Generator) -> Disturbance:
        """The disturbance, with a factor that is drawn."""
        return Disturbance(self.disturbed, float(rng.choice(FACTORS)))

    @property
    def shift(self) -> Disturbance | None:
        """A second disturbance, which adds to what is loaded, copied or multiplied; none for barriers and fences."""
        return None if self.disturbed in (BARRIERS, FENCES) else Disturbance(self.disturbed, shift=1.0)

    def carried(self, launch: Any, trace: Trace | None) -> str:
        """What a shifted run shows: outputs that all grow by one factor got it from something carried along.

        A one that is brought the right way and multiplied to results made otherwise would pass the first run.
        """
        for position, expected in launch.outputs.items() if trace else ():
            stays = self.besides.get(position, np.zeros_like(expected.value))
            value, output = (expected.value - stays).ravel(), (trace.outputs[position] - stays).ravel()
            size = float(value @ value)
            if len(value) < FEW or not size or not np.isfinite(output).all():
                continue
            if np.linalg.norm(output - (output @ value) / size * value) <= ALIKE * np.linalg.norm(output):
                shifted = _TRIED[self.disturbed].partition(" times")[0].replace("every", "a factor of every")
                return f"In a second run, with 1 added to {shifted}, all of the result grew by one factor: {self.why}."
        return ""

    def shortfall(self, disturbance: Disturbance, names: list[str], launch: Any, trace: Trace | None) -> str:
        """What the disturbed run shows to be missing, in a sentence; nothing where all is as it must be.

        It has no trace if it broke off.
        """
        tried = f"In a second run, with {_TRIED[self.disturbed].format(factor=disturbance.factor)}"
        if self.disturbed in (BARRIERS, FENCES):
            return f"{tried}, nothing went wrong: {self.why}." if trace and not trace.errors else ""
        if trace is None:
            return f"{tried}, the kernel broke off: {self.why}."
        factors = [disturbance.factor**power for power in self.powers]
        for position, expected in launch.outputs.items():
            stays = self.besides.get(position, np.zeros_like(expected.value))
            output, value = trace.outputs[position], expected.value - stays
            if np.isfinite(expected.bound).all() and not any(
                _close(output, factor * value + stays, max(factor, 1) * expected.bound) for factor in factors
            ):
                at = np.unravel_index(np.argmax(np.abs(value)), value.shape)
                index = ", ".join(str(int(i)) for i in at)
                return (
                    f"{tried}, {names[position]}[{index}] should come out as "
                    f"{factors[0] * value[at] + stays[at]:.6g} and was {output[at]:.6g}: {self.why}."
                )
        return ""


def _close(output: Shaped[np.ndarray, "..."], value, bound) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.abs(output.astype(np.float64) - value) <= bound).all())
