"""The base of all batch norm problems: images in a layout, and one value per channel in all other arrays."""

from dataclasses import dataclass, replace
from math import prod
from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Shaped

from labkit import ladder
from labkit.arrays.views import as_bits, reshape
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal
from labkit.ladder.sizes import COUNT_LIMIT, check_sizes

Layout = Literal["NCHW", "NHWC"]
LAYOUTS = "NCHW", "NHWC"
EPS32 = float(np.finfo(np.float32).eps)
HARD_MEAN, HARD_VARIANCE = 1e4, 1e-3  # of each channel or row of a `hard` problem
CHECKED_ELEMENTS, CHECKED_CHANNELS = 2**24, 6  # larger problems are checked on a sample of channels


@dataclass(frozen=True)
class ImageProblem(ladder.Problem):
    """Batch norm, or its gradients; a subclass declares the arrays.

    Attributes
    ----------
    N, C, H, W, relu, layout
        Images, channels, rows and columns of pixels; whether ReLU follows (a NaN stays NaN); the axes of images.
    """

    N: int
    C: int
    H: int
    W: int
    relu: bool = True
    layout: Layout = "NCHW"

    message_name = "batch norm"
    arrays: ClassVar[tuple[str, ...]]  # names, in the order of a step's parameters
    image_arrays: ClassVar[tuple[str, ...]]  # names of images; the other arrays have one value per channel
    min_values: ClassVar[int] = 2  # per channel

    def __post_init__(self):
        check_sizes(self, N=1, C=1, H=1, W=1)
        if self.values < self.min_values:
            raise ValueError("each channel has one value, which has no unbiased variance: train with more than one")
        if self.values >= COUNT_LIMIT:
            raise ValueError(
                f"each channel has {self.values} values, and kernels count them below {COUNT_LIMIT}: take fewer"
            )
        if self.layout not in LAYOUTS:
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")

    def __str__(self):
        words = [f"{self.N}x{self.C}x{self.H}x{self.W}", "relu" * self.relu, "NHWC" * (self.layout == "NHWC")]
        return " ".join(filter(None, words))

    @property
    def values(self) -> int:
        """Number of values per channel."""
        return self.N * self.H * self.W

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        pixels = (self.C, self.H, self.W) if self.layout == "NCHW" else (self.H, self.W, self.C)
        return {name: (self.N, *pixels) if name in self.image_arrays else (self.C,) for name in self.arrays}

    @property
    def float32_arrays(self) -> list[str]:
        """Names of all arrays but images."""
        return [name for name in self.arrays if name not in self.image_arrays]

    @property
    def axes(self) -> dict[str, str]:
        return {name: self.layout if name in self.image_arrays else "C" for name in self.arrays}

    def arrays_by_name(self, operands: tuple) -> dict[str, Shaped[np.ndarray, "..."]]:
        """Return the arrays among operands by their names."""
        return dict(zip(self.arrays, operands, strict=False))

    def checked_part(self, operands: tuple) -> tuple:
        """Return the operands of some channels of a large problem, the first and the last among them."""
        if self.C * self.values <= CHECKED_ELEMENTS:
            return operands
        channels = np.unique(np.linspace(0, self.C - 1, CHECKED_CHANNELS).astype(int))
        axes = {name: self.layout.index("C") if name in self.image_arrays else 0 for name in self.arrays}
        arrays = [np.take(X, channels, axes[name]) for name, X in self.arrays_by_name(operands).items()]
        return *arrays, replace(self, C=len(channels))

    def _draw_images(self, rng, format: Format, hard: bool) -> Shaped[np.ndarray, "..."]:
        """Return random images; each channel has its own mean and spread, or all have those of hard statistics."""
        if hard:
            mean, spread = np.full(self.C, HARD_MEAN), np.full(self.C, np.sqrt(HARD_VARIANCE))
        else:
            mean, spread = rng.uniform(-1, 1, self.C), rng.uniform(0.5, 2, self.C)
        x = normal(rng, self.shapes["x"], FP32)
        x = x * self._per_channel(spread).astype(np.float32) + self._per_channel(mean).astype(np.float32)
        return format.encode(x)

    def _draw_channels(self, rng) -> dict[str, Shaped[np.ndarray, " C"]]:
        """Return random weights, biases and running statistics."""
        arrays = {name: rng.standard_normal(self.C).astype(np.float32) for name in ("weight", "bias", "running_mean")}
        return arrays | {"running_variance": rng.uniform(0.5, 2, self.C).astype(np.float32)}

    @property
    def _reduced_axes(self) -> tuple[int, ...]:
        """The axes of images over which statistics are taken."""
        return tuple(axis for axis, letter in enumerate(self.layout) if letter != "C")

    def _per_channel(self, values: Float64[np.ndarray, " C"]) -> Shaped[np.ndarray, "..."]:
        """Return one value per channel, in a shape that broadcasts to images."""
        return values[:, None, None] if self.layout == "NCHW" else values

    def _apply_relu(self, y: Float64[np.ndarray, "..."], bound: Float64[np.ndarray, "..."]) -> ladder.Expected:
        """Return the expected result after ReLU, if it follows; a y that is negative beyond its bound is exactly 0."""
        if not self.relu:
            return ladder.Expected(y, bound)
        return ladder.Expected(np.maximum(y, 0), np.where(y < -bound, 0, bound))


@dataclass(frozen=True)
class EpsProblem(ImageProblem):
    """Batch norm with `eps`, the summand of the variance, and `hard`, described by `BatchForward`."""

    eps: float = 1e-5
    hard: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_eps(self.eps)

    def __str__(self):
        return super().__str__() + " hard" * self.hard


def check_eps(eps) -> None:
    """Raise ValueError if the summand of the variance is not a number from 0 on."""
    if not isinstance(eps, Real) or not eps >= 0:
        raise ValueError(f"eps is {eps!r}: give a number that is not below 0")


def nan_array(shape: tuple[int, ...], format: Format) -> Shaped[np.ndarray, "..."]:
    """Return an array of NaN for results: an unwritten element stays NaN."""
    return np.full(shape, format.result.encode(np.nan), format.result.dtype)


def as_planes(*images) -> list:
    """View images in NCHW as matrices: a row per image and channel, a column per pixel.

    Raises
    ------
    TooLarge
        Kernels would count the rows in more than 32 bits.
    """
    planes, *pixels = images[0].shape[0] * images[0].shape[1], *images[0].shape[2:]
    if planes >= 2 * COUNT_LIMIT:
        limit = 2 * COUNT_LIMIT
        raise ladder.TooLarge(f"images and channels make {planes} planes, and this step counts them below {limit}")
    return [_as_matrix(X, planes, prod(pixels)) for X in images]


def as_pixels(*images) -> list:
    """View images in NHWC as matrices: a row per pixel, a column per channel."""
    return [_as_matrix(X, prod(X.shape[:3]), X.shape[3]) for X in images]


def _as_matrix(X, rows, columns):
    """View images as a matrix, of bits where they have 16-bit numbers."""
    X = reshape(X, rows, columns)
    return X if X.dtype.itemsize > 2 else as_bits(X)
