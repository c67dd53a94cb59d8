"""A run that goes otherwise than its source says, by which a check sees what a result depends on.

What can go otherwise is a `Disturbed`. It is defined here, or beside the code in which it acts, which asks the launch's
`disturbance` there: `scaled` for values, `leaves_out` for what is left undone.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Disturbed:
    """What goes otherwise in a run. `tried` says so to a learner, behind "In a second run, with"; it may name the
    `{factor:g}` and the `{shift:+g}` of the disturbance.
    """

    tried: str


SHARED_LOADS = Disturbed("all that is loaded from shared memory times {factor:g} {shift:+g}")
COPIES = Disturbed("all that asynchronous copies bring times {factor:g} {shift:+g}")  # of threads, to shared memory
PRODUCTS = Disturbed("A of every product of the tensor cores times {factor:g} {shift:+g}")
BARRIERS = Disturbed("no `cuda.syncthreads()`")
FENCES = Disturbed("no `cuda.threadfence()`")


@dataclass(frozen=True)
class Disturbance:
    """What goes otherwise in a run, None for nothing: values are `factor` times what is there plus `shift`, or acts are
    left out.
    """

    what: Disturbed | None = None
    factor: float = 1.0
    shift: float = 0.0

    @property
    def tried(self) -> str:
        """What goes otherwise, in words."""
        return self.what.tried.format(factor=self.factor, shift=self.shift)

    def leaves_out(self, what: Disturbed) -> bool:
        """Whether an act is left out of this run."""
        return self.what is not None and what == self.what

    def scaled(self, what: Disturbed | None, values: np.ndarray) -> np.ndarray:
        """What is seen instead of these values; an unsigned word of 32 bits holds two float16, others no number."""
        if self.what is None or what != self.what:
            return values
        if values.dtype == np.uint32:
            halves = np.ascontiguousarray(values).view(np.float16)
            return (halves * np.float16(self.factor) + np.float16(self.shift)).view(np.uint32)
        of = values.dtype.type
        return values * of(self.factor) + of(self.shift) if values.dtype.kind == "f" else values
