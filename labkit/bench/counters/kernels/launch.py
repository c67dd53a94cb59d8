"""A kernel with all that its launch needs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit import simulate

BLOCK_THREADS = 256  # default block size


@dataclass(frozen=True)
class Launch:
    """One launch: `arguments()` makes new arguments of the kernel, always the same.

    `left_open`: counters that cannot be predicted from addresses, and why.
    """

    kernel: Any
    grid: int | tuple[int, int]
    block: int | tuple[int, int]
    arguments: Callable[[], tuple]
    problem: str
    name: str = ""
    left_open: dict[str, str] = field(default_factory=dict)
    shared_bytes: int = 0

    @property
    def title(self) -> str:
        return self.name or self.kernel.__name__

    def simulate(self):
        """Return the trace of this launch."""
        return simulate(self.kernel, self.grid, self.block, *self.arguments(), shared_bytes=self.shared_bytes)


L2_PAIRS = {
    "l2_hit_rate": "L2 fetches sectors in pairs that neighbouring warps share: what hits depends on which came first"
}


def per_element(
    kernel,
    elements: int,
    arguments: Callable[[], tuple],
    problem: str = "",
    name: str = "",
    left_open: dict[str, str] | None = None,
) -> Launch:
    """Return a launch with one thread per element."""
    grid = -(-elements // BLOCK_THREADS)
    return Launch(kernel, grid, BLOCK_THREADS, arguments, problem or str(elements), name, left_open or {})


def normal(*shape: int, dtype=np.float32) -> np.ndarray:
    """Return random normal numbers."""
    return np.random.default_rng(shape).standard_normal(shape, dtype=np.float32).astype(dtype)


def integers(elements: int, below: int, dtype) -> np.ndarray:
    """Return random whole numbers from 0."""
    return np.random.default_rng(elements).integers(below, size=elements, dtype=dtype)


def zeros(*shape: int, dtype=np.float32) -> np.ndarray:
    """Return an array for a result, filled with zeros."""
    return np.zeros(shape, dtype)
