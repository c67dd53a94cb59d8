"""A run that goes otherwise than its source says, by which a check sees what a result depends on."""

from dataclasses import dataclass

import numpy as np

SHARED_LOADS = "shared loads"
COPIES = "asynchronous copies"  # of threads, to shared memory
PRODUCTS = "products of tensor cores"
BARRIERS = "barriers"  # of whole blocks
FENCES = "fences"  # of a thread, for other blocks


@dataclass(frozen=True)
class Disturbance:
    """What goes otherwise: loads, copies or products give `factor` times what is there, plus `shift`; barriers or
    fences give nothing.
    """

    what: str = ""
    factor: float = 1.0
    shift: float = 0.0

    def scaled(self, what: str, values: np.ndarray) -> np.ndarray:
        """What is seen instead of these values; an unsigned word of 32 bits holds two float16, others no number."""
        if what != self.what:
            return values
        if values.dtype == np.uint32:
            halves = np.ascontiguousarray(values).view(np.float16)
            return (halves * np.float16(self.factor) + np.float16(self.shift)).view(np.uint32)
        of = values.dtype.type
        return values * of(self.factor) + of(self.shift) if values.dtype.kind == "f" else values
