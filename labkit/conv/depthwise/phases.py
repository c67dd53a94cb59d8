"""A dilated convolution as several plain ones: with dilation d, no tap reaches from a pixel to its d - 1 neighbours.

Outputs d apart and the pixels under their taps, which are d apart as well, are a convolution without dilation. There
are d of them along each axis, and they share nothing but the filters.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from labkit.conv.problem import Convolution
from labkit.ladder import TooLarge

MAX_PHASES = 64  # launches


class Axis(NamedTuple):
    """Rows or columns of a phase: their numbers, the zeros before the pixels, and the first ones in the whole image."""

    pixels: int
    outputs: int
    zeros: int
    first_pixel: int
    first_output: int


class Phase(NamedTuple):
    """A convolution without dilation, which is a part of one with it."""

    rows: Axis
    columns: Axis

    def shape(self, name: str) -> tuple[int, int]:
        """Return rows and columns of x or y."""
        rows, columns = self
        return (rows.pixels, columns.pixels) if name == "x" else (rows.outputs, columns.outputs)

    def first(self, name: str) -> tuple[int, int]:
        """Return the first row and column of x or y in the whole image."""
        rows, columns = self
        return (rows.first_pixel, columns.first_pixel) if name == "x" else (rows.first_output, columns.first_output)


def phases(problem: Convolution, name: str) -> list[Phase]:
    """Return the phases of a problem that have elements of x or y."""
    if problem.dilation_h * problem.dilation_w > MAX_PHASES:
        raise TooLarge(
            f"dilations of {problem.dilation_h} and {problem.dilation_w} take more than {MAX_PHASES} launches"
        )
    rows = axis_phases(problem.H, problem.P, problem.top, problem.dilation_h)
    columns = axis_phases(problem.W, problem.Q, problem.left, problem.dilation_w)
    found = [Phase(row, column) for row, column in product(rows, columns)]
    return [phase for phase in found if all(phase.shape(name))]


def axis_phases(pixels: int, outputs: int, zeros: int, dilation: int) -> Iterator[Axis]:
    """Yield the phases of an axis."""
    for first_output in range(dilation):
        before, first_pixel = divmod(first_output - zeros, dilation)
        num_pixels = max(0, -(-(pixels - first_pixel) // dilation))
        num_outputs = max(0, -(-(outputs - first_output) // dilation))
        yield Axis(num_pixels, num_outputs, -before, first_pixel, first_output)
