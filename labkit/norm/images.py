"""What all problems of batch norm have: images in a layout, and values for each channel."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Shaped

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

Layout = Literal["NCHW", "NHWC"]
LAYOUTS = "NCHW", "NHWC"
EPS = float(np.finfo(np.float32).eps)
HARD_MEAN, HARD_VARIANCE = 1e4, 1e-3
LARGE = 2**24  # elements, above which some of the channels tell the error
SOME = 6  # of them
MOST = 2**31


@dataclass(frozen=True)
class OfImages(ladder.Problem):
    """A batch norm, or its gradients; which arrays are given and computed, a subclass says.

    Attributes
    ----------
    N, C, H, W
        Images, channels, rows and columns of pixels.
    relu
        Whether what is below zero becomes zero; a NaN stays one.
    layout
        The axes of images.

    Raises
    ------
    TypeError, ValueError
        The sizes make no batch norm; the message says why, and what to do.
    """

    N: int
    C: int
    H: int
    W: int
    relu: bool = True
    layout: Layout = "NCHW"

    called = "batch norm"
    arrays: ClassVar[tuple[str, ...]]  # their names, in the order in which steps take them
    of_pixels: ClassVar[tuple[str, ...]]  # those that are images; the others have a value for each channel
    least_values: ClassVar[int] = 2  # of a channel

    def __post_init__(self):
        self._check_counts(N=1, C=1, H=1, W=1)
        if self.values < self.least_values:
            raise ValueError("each channel has one value, which has no unbiased variance: train with more than one")
        if self.values >= MOST:
            raise ValueError(f"each channel has {self.values} values, and kernels count them below {MOST}: take fewer")
        if self.layout not in LAYOUTS:
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")

    def __str__(self):
        words = [f"{self.N}x{self.C}x{self.H}x{self.W}", "relu" * self.relu, "NHWC" * (self.layout == "NHWC")]
        return " ".join(filter(None, words))

    @property
    def values(self) -> int:
        """Values of a channel."""
        return self.N * self.H * self.W

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        pixels = (self.C, self.H, self.W) if self.layout == "NCHW" else (self.H, self.W, self.C)
        return {name: (self.N, *pixels) if name in self.of_pixels else (self.C,) for name in self.arrays}

    @property
    def float32_arrays(self) -> list[str]:
        """All arrays but images."""
        return [name for name in self.arrays if name not in self.of_pixels]

    @property
    def axes(self) -> dict[str, str]:
        """Those of images as the layout has them; the others have one."""
        return {name: self.layout if name in self.of_pixels else "C" for name in self.arrays}

    def named(self, operands: tuple) -> dict[str, Shaped[np.ndarray, "..."]]:
        """The arrays among operands, by their names."""
        return dict(zip(self.arrays, operands, strict=False))

    def part(self, operands: tuple) -> tuple:
        """Of a large problem some of the channels, the first and the last among them."""
        if self.C * self.values <= LARGE:
            return operands
        some = np.unique(np.linspace(0, self.C - 1, SOME).astype(int))
        axis = {name: self.layout.index("C") if name in self.of_pixels else 0 for name in self.arrays}
        kept = [np.take(X, some, axis[name]) for name, X in self.named(operands).items()]
        return *kept, replace(self, C=len(some))

    def _check_counts(self, **least):
        for name, lowest in least.items():
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not lowest <= size < MOST:
                raise ValueError(f"{name} is {size}, but it must be at least {lowest} and below {MOST}")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap

    def _check_eps(self):
        if not isinstance(self.eps, Real) or not self.eps >= 0:
            raise ValueError(f"eps is {self.eps!r}: give a number that is not below 0")

    def _drawn(self, rng, format: Format, hard: bool) -> Shaped[np.ndarray, "..."]:
        """Images of which each channel has a mean and a spread of its own, or all those of hard statistics."""
        if hard:
            centre, spread = np.full(self.C, HARD_MEAN), np.full(self.C, np.sqrt(HARD_VARIANCE))
        else:
            centre, spread = rng.uniform(-1, 1, self.C), rng.uniform(0.5, 2, self.C)
        x = normal(rng, self.shapes["x"], FP32)
        x = x * self._by_channel(spread).astype(np.float32) + self._by_channel(centre).astype(np.float32)
        return format.encode(x)

    @property
    def _axes(self) -> tuple[int, ...]:
        """Those of images along which a channel's values lie."""
        return tuple(axis for axis, letter in enumerate(self.layout) if letter != "C")

    def _by_channel(self, of_channel: Float64[np.ndarray, " C"]) -> Shaped[np.ndarray, "..."]:
        """A value for each channel, shaped so that it meets the images."""
        return of_channel[:, None, None] if self.layout == "NCHW" else of_channel

    def _rectified(self, y: Float64[np.ndarray, "..."], bound: Float64[np.ndarray, "..."]) -> ladder.Expected:
        """y after ReLU, if there is one, of a y that is known within a bound; what it surely cuts is zero."""
        if not self.relu:
            return ladder.Expected(y, bound)
        return ladder.Expected(np.maximum(y, 0), np.where(y < -bound, 0, bound))


def blank(shape: tuple[int, ...], format: Format) -> Shaped[np.ndarray, "..."]:
    """An array of NaN, in which every element that stays unwritten shows."""
    return np.full(shape, format.result.encode(np.nan), format.result.dtype)
