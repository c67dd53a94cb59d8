"""Disturbed runs, which show a check what a result depends on.

A `Disturbed` names what is changed. It is defined here, or next to the code that it changes. That code asks the
launch's `disturbance`: `scaled` changes values, `leaves_out` skips an action.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Disturbed:
    """Something that a run changes. `tried` says so to a learner, after "In a second run, with".

    `tried` may name the `{factor:g}` and the `{shift:+g}` of the disturbance.
    """

    tried: str


SHARED_LOADS = Disturbed("all that is loaded from shared memory times {factor:g} {shift:+g}")
COPIES = Disturbed("all that asynchronous copies bring times {factor:g} {shift:+g}")  # threads' copies to shared memory
PRODUCTS = Disturbed("A of every product of the tensor cores times {factor:g} {shift:+g}")
BARRIERS = Disturbed("no `cuda.syncthreads()`")
FENCES = Disturbed("no `cuda.threadfence()`")


@dataclass(frozen=True)
class Disturbance:
    """The change in a run: values become `factor` times themselves plus `shift`, or an action is left out."""

    what: Disturbed | None = None
    factor: float = 1.0
    shift: float = 0.0

    @property
    def tried(self) -> str:
        """The change, in words."""
        return self.what.tried.format(factor=self.factor, shift=self.shift)

    def leaves_out(self, what: Disturbed) -> bool:
        """Return whether the run leaves out an action."""
        return self.what is not None and what == self.what

    def disturb(self, what: Disturbed | None, values: np.ndarray) -> np.ndarray:
        """Return the disturbed values; a uint32 counts as two float16, and other integers stay as they are."""
        if self.what is None or what != self.what:
            return values
        if values.dtype == np.uint32:
            halves = np.ascontiguousarray(values).view(np.float16)
            return (halves * np.float16(self.factor) + np.float16(self.shift)).view(np.uint32)
        number = values.dtype.type
        return values * number(self.factor) + number(self.shift) if values.dtype.kind == "f" else values
