"""Launches: what a step, one kernel of an operation's ladder, runs for given operands."""

from dataclasses import dataclass
from typing import Any

MAX_BLOCKS = 2**31 - 1, 65535, 65535  # of a grid along x, y and z (CUDA C++ Programming Guide, "Compute Capabilities")


class TooLarge(ValueError):
    """A step computes such problems, but not of these sizes: `why` is the reason, in a sentence without advice."""

    def __init__(self, why: str, advice: str = "choose another step"):
        super().__init__(f"{why}: {advice}")
        self.why = why


@dataclass(frozen=True)
class Launch:
    """A kernel with its grid, block and arguments; a loop for the CPU has an empty grid and block.

    Raises
    ------
    TooLarge
        The grid has more blocks along an axis than a GPU accepts.
    """

    kernel: Any
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: tuple[Any, ...]
    shared_bytes: int = 0

    def __post_init__(self):
        grid = self.grid if isinstance(self.grid, tuple) else (self.grid,)
        for axis, count, limit in zip("xyz", grid, MAX_BLOCKS, strict=False):
            if count > limit:
                raise TooLarge(
                    f"the grid has {count} blocks along {axis}, and a GPU takes {limit}",
                    "take a smaller problem, or another step",
                )

    def run(self, stream=0) -> None:
        """Launch the kernel on the GPU if there is one, else in the simulator."""
        if self.grid == ():
            self.kernel(*self.arguments)
        else:
            self.kernel[self.grid, self.block, stream, self.shared_bytes](*self.arguments)
