"""Convolutions with the error bound of FFTs: a bound by norms, since every pixel affects each output.

A step of a fast transform multiplies by a root of unity and adds. Its error is at most eta, about 6.7 u, where u is
half of eps. So the error of a transform of n points is log2(n) eta, relative to its result in the 2-norm. (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, theorem 24.2.) Two real lines in a complex one take one
more step. So with e = 2 (log2(T) + 1) 7 u for T x T points:

- The spectra of tiles a and b are off by e |a| and e |b|. By Cauchy's inequality, and since transforms keep norms,
  that moves no sum of their products, once transformed back, by more than 2 e |a| |b|.
- A filter's spectrum that is summed directly, by Horner's rule along its columns, is off by less than
  4 max(R, S)^1.5 eps |b|: each of so many steps costs 5 u, relative to a sum of sizes. It is for up to 11 taps.
- Sums of so many products of complex numbers, in any order, are off by at most sqrt(2) terms eps |a| |b| where each
  takes four real ones, and by (1.6 terms + 3.1) eps |a| |b| where it takes three, by the same inequality.
- Each point of the inverse is a sum of all frequencies, each of which went through as many steps: it is off by e times
  the sum of their sizes, which is at most |a| |b|.

An element of a result is a sum of these over channels, filters or images, and Cauchy's inequality once more gives the
norms over all of these. Tiles are parts of the operands, and have no larger norms.

With random roundings, all outputs of a tile have the error of the largest (`random_rounding_bound`). The lower bound
counts.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from labkit import ladder
from labkit.conv.problem import EPS, BackwardData, BackwardFilter, Convolution, Forward, random_rounding_bound
from labkit.formats import FP32, Format

MAX_STEPS = 2 * (6 + 1)  # of a transform of 64 x 64 points
MAX_TAPS = 11  # along an axis, of a filter whose spectrum is summed directly
TRANSFORM_ERROR = 3 * MAX_STEPS * 7 / 2  # in eps


class Spectral(Convolution):
    """A convolution with an error bound by the norms of its operands."""

    shared_axes: ClassVar[dict[str, int]]  # for each operand, the axis that it shares with the result

    @property
    def error(self) -> float:
        """Error bound of an element of the result, relative to the norms of its operands."""
        filter_error = 4 * min(MAX_TAPS, max(self.R, self.S)) ** 1.5
        return (TRANSFORM_ERROR + filter_error + 1.6 * self.complex_terms + 3.1) * EPS

    @property
    def complex_terms(self) -> int:
        """Greatest number of complex products that a frequency of the result sums up."""
        return {"y": self.C, "x": self.K, "w": self.N * self.P * self.Q}[self.result]

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the result in float64, and the error bound of each element by the norms of the operands."""
        *arrays, problem = operands  # a part of this problem, perhaps
        inputs = {name: np.asarray(X, np.float64) for name, X in zip("xwy", arrays) if name != self.result}
        value = problem.oracle(*inputs.values())
        norms = [
            np.sqrt((inputs[name] ** 2).sum(tuple({0, 1, 2, 3} - {axis}))) for name, axis in self.shared_axes.items()
        ]
        bound = problem.error * np.multiply.outer(*norms)[:, :, None, None]
        squares = (problem.oracle(*map(np.square, inputs.values())) + value**2).max((2, 3), keepdims=True)
        bound = np.minimum(bound, random_rounding_bound(MAX_STEPS + self.complex_terms, squares, 0.0))
        return {"xwy".index(self.result): ladder.Expected(value, np.broadcast_to(bound, value.shape))}


@dataclass(frozen=True)
class SpectralForward(Spectral, Forward):
    """The outputs y, with a bound by norms."""

    shared_axes: ClassVar = {"x": 0, "w": 0}


@dataclass(frozen=True)
class SpectralData(Spectral, BackwardData):
    """The gradient x of the images, with a bound by norms."""

    shared_axes: ClassVar = {"y": 0, "w": 1}


@dataclass(frozen=True)
class SpectralFilter(Spectral, BackwardFilter):
    """The gradient w of the filters, with a bound by norms."""

    shared_axes: ClassVar = {"y": 1, "x": 1}
