"""The problem of every convolution kernel: the outputs, or the gradient of the images or of the filters.

Letters are those of the cuDNN paper: N images of C channels and H x W pixels, K filters of R x S taps, outputs of
P x Q pixels. (Chetlur and others, cuDNN: Efficient Primitives for Deep Learning, 2014, section 2.)
"""

from dataclasses import dataclass, fields, replace
from numbers import Integral
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Float64

from labkit import ladder
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

Layout = Literal["NCHW", "NHWC"]
Padding = Literal["valid", "same", "full"]
SAMPLES = 6  # checked positions along an axis of a large problem
MAX_SIZE = 2**31  # below which kernels count
LARGE = 2**31  # FLOPs, above which a part of the result is checked
FILTER_AXES = {"NCHW": "KCRS", "NHWC": "KRSC"}
EPS = float(np.finfo(np.float32).eps)
OPERANDS = {"x": "images", "w": "filters", "y": "outputs"}
# for the SUPPORTED of a kernel, the values of a problem's fields that it takes: strides, dilations and groups are 1
PLAIN_NCHW = dict.fromkeys(("stride_h", "stride_w", "dilation_h", "dilation_w", "groups"), (1,)) | {"layout": ("NCHW",)}


def output_size(size: int, taps: int, stride: int = 1, before: int = 0, after: int = 0, dilation: int = 1) -> int:
    """Return the number of outputs along an axis: P for H, Q for W; 0 or less if the filter fits nowhere.

    Parameters
    ----------
    size, taps
        Pixels of the image and taps of the filter along the axis.
    stride
        Pixels from one output to the next; below 1 it raises ValueError.
    before, after
        Zeros added at the two ends.
    dilation
        Pixels from one tap to the next.
    """
    _check_stride(stride)
    return (size + before + after - dilation * (taps - 1) - 1) // stride + 1


def pads(padding: Padding, size: int, taps: int, stride: int = 1, dilation: int = 1) -> tuple[int, int]:
    """Return the zeros before and after an axis.

    "valid" adds none, "same" gives one output per `stride` pixels, and "full" puts every tap on every pixel. If "same"
    needs an odd number, the last zero goes after the axis. Raise ValueError for another padding, or a stride below 1.
    """
    _check_stride(stride)
    reach = dilation * (taps - 1)
    if padding == "valid":
        return 0, 0
    if padding == "full":
        return reach, reach
    if padding != "same":
        raise ValueError(f"there is no padding {padding!r}: say valid, same or full, or give numbers")
    needed = max(0, (-(-size // stride) - 1) * stride + reach + 1 - size)
    return needed // 2, needed - needed // 2


def random_rounding_bound(
    roundings: int, squares: Float64[np.ndarray, "..."], value: Float64[np.ndarray, "..."]
) -> Float64[np.ndarray, "..."]:
    """Return the error bound of a sum with random rounding errors.

    Each of `roundings` partial sums is off by at most eps of itself, and is at most the root of the terms' squares, or
    the value. Independent errors add up by their squares; eight times that is never seen. (Higham and Mary, A New
    Approach to Probabilistic Rounding Error Analysis, 2019.)

    Parameters
    ----------
    roundings
        Number of rounded partial sums.
    squares
        Sum of the squared terms.
    value
        Exact sum.
    """
    return 8 * EPS * np.sqrt(roundings * (squares + value**2))


@dataclass(frozen=True)
class Convolution(ladder.Problem):
    """A convolution of N images with K filters; a subclass says which of its three arrays is the result.

    Attributes
    ----------
    N, C, H, W
        Images, channels, rows and columns of pixels.
    K, R, S
        Filters, and rows and columns of their taps.
    stride_h, stride_w
        Pixels from one output to the next.
    top, bottom, left, right
        Rows and columns of zeros around an image.
    dilation_h, dilation_w
        Pixels from one tap to the next.
    groups
        Groups of channels and of filters: a filter uses the C / groups channels of its own group.
    flipped
        True for filters rotated by 180 degrees, as in mathematics; False for cross-correlation, as in neural networks.
    layout
        The axes of images and outputs; filters are KCRS for NCHW, and KRSC for NHWC.

    Raises
    ------
    TypeError, ValueError
        A size is invalid, or sizes do not fit; the message says which, and what to do.
    """

    N: int
    C: int
    H: int
    W: int
    K: int
    R: int
    S: int
    stride_h: int = 1
    stride_w: int = 1
    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    groups: int = 1
    flipped: bool = False
    layout: Layout = "NCHW"

    message_name = "convolution"
    array_descriptions = MappingProxyType({name: f"{name}, the {what}," for name, what in OPERANDS.items()})
    result: ClassVar[Literal["x", "w", "y"]]
    _sampled_axes: ClassVar[str]  # the two axes of the result without taps

    def __post_init__(self):
        for name in [field.name for field in fields(self) if field.type is int]:
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if abs(size) >= MAX_SIZE:
                raise ValueError(f"{name} is {size}, but kernels count below {MAX_SIZE}: take less at a time")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap
        if not isinstance(self.flipped, bool | np.bool_):
            raise TypeError(f"flipped is {self.flipped!r}: say True or False")
        for name in ("N", "C", "H", "W", "K", "R", "S", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but it must be at least 1")
        reach_h, reach_w = self.dilation_h * (self.R - 1), self.dilation_w * (self.S - 1)
        for name, reach in {"top": reach_h, "bottom": reach_h, "left": reach_w, "right": reach_w}.items():
            if not 0 <= getattr(self, name) <= reach:
                raise ValueError(
                    f"{name} is {getattr(self, name)} rows or columns of zeros, but beyond {reach} a filter meets "
                    "zeros alone: use 0 to that"
                )
        for name in ("C", "K"):
            if getattr(self, name) % self.groups:
                raise ValueError(
                    f"{name} is {getattr(self, name)}, which {self.groups} groups do not divide: choose groups that do"
                )
        if self.P < 1 or self.Q < 1:
            raise ValueError(
                f"the filter of {self.R} x {self.S} taps does not fit into the image of {self.H} x {self.W} with its "
                "padding, so that there is no output: use a smaller filter, less dilation or more padding"
            )
        if self.layout not in tuple(FILTER_AXES):
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")

    def __str__(self):
        text = f"{self.N}x{self.C}x{self.H}x{self.W} {self.K}x{self.R}x{self.S}"
        names = [field.name for field in fields(self)][7:]
        default = {field.name: field.default for field in fields(self)}
        return " ".join([text, *(f"{n}={getattr(self, n)}" for n in names if getattr(self, n) != default[n])])

    @property
    def P(self) -> int:
        """Rows of the outputs."""
        return output_size(self.H, self.R, self.stride_h, self.top, self.bottom, self.dilation_h)

    @property
    def Q(self) -> int:
        """Columns of the outputs."""
        return output_size(self.W, self.S, self.stride_w, self.left, self.right, self.dilation_w)

    @property
    def dilated_stride(self) -> int:
        """Largest stride along an axis with dilation; 1 if no such axis has a stride."""
        axes = (self.stride_h, self.dilation_h), (self.stride_w, self.dilation_w)
        return max((stride for stride, dilation in axes if dilation > 1), default=1)

    @property
    def odd_channels(self) -> bool:
        """Whether the number of channels is odd, so that pixels are no whole words of two 16-bit channels."""
        return self.C % 2 == 1

    @property
    def group_channels(self) -> int:
        """Channels of a group, and of a filter."""
        return self.C // self.groups

    @property
    def group_filters(self) -> int:
        """Filters of a group."""
        return self.K // self.groups

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of images x, filters w and outputs y, in the layout."""
        return {
            "x": self._shape(self.N, self.C, self.H, self.W),
            "w": self._shape(self.K, self.C // self.groups, self.R, self.S),
            "y": self._shape(self.N, self.K, self.P, self.Q),
        }

    @property
    def axes(self) -> dict[str, str]:
        """Letters of the axes of each array."""
        return {"x": self.layout, "w": FILTER_AXES[self.layout], "y": self.layout}

    @property
    def flops(self) -> int:
        """Two operations per tap of each output's filter, including taps on padding."""
        return 2 * self.N * self.K * self.P * self.Q * (self.C // self.groups) * self.R * self.S

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of images, filters and outputs, each once."""
        sizes = {name: int(np.prod(shape)) for name, shape in self.shapes.items()}
        result_size = sizes.pop(self.result)
        return format.itemsize * sum(sizes.values()) + format.result.itemsize * result_size

    def cpp_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        """Return sizes, strides, zeros before an image, dilations, groups, and 1 for a flipped filter."""
        names = "C H W K R S P Q stride_h stride_w top left dilation_h dilation_w groups flipped".split()
        return tuple(int(getattr(self, name)) for name in names)

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return x, w, y and the problem: inputs are random normal, the result is NaN to show unwritten elements."""
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.K, self.R])
        arrays = {name: normal(rng, shape, format) for name, shape in self.shapes.items() if name != self.result}
        arrays[self.result] = np.full(self.shapes[self.result], format.result.encode(np.nan), format.result.dtype)
        return arrays["x"], arrays["w"], arrays["y"], self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the result in float64, and the error bound of each element.

        A float32 sum of products, in any order, is off by at most their number times eps times the sum of their
        magnitudes. Random roundings add up to less, and a missing product could hide in that bound. So the bound is
        `random_rounding_bound` if that is lower. The rounding of the result is added.
        """
        *arrays, problem = operands  # the problem may be smaller than this one (`checked_part`)
        position = "xwy".index(self.result)
        inputs = [format.decode(np.asarray(X)) for index, X in enumerate(arrays) if index != position]
        value = problem.oracle(*inputs)
        magnitude = problem.oracle(*map(np.abs, inputs))
        least_normal = 2.0**-14 if format.result.dtype == np.float16 else 0.0  # below it rounding is not relative
        rounding = format.result.rounding * np.maximum(np.abs(value), least_normal)
        random = random_rounding_bound(self.terms, problem.oracle(*map(np.square, inputs)), value)
        return {position: ladder.Expected(value, np.minimum(self.terms * EPS * magnitude, random) + rounding)}

    def checked_part(self, operands: tuple) -> tuple:
        """Return operands of a part of a large problem: a few positions, with the first and last, along two axes."""
        if self.flops <= LARGE or self.groups > 1:
            return operands
        x, w, y, _ = operands
        channel = 1 if self.layout == "NCHW" else 3
        counts = {name: getattr(self, name) for name in self._sampled_axes}
        sampled = {name: np.unique(np.linspace(0, n - 1, SAMPLES).astype(int)) for name, n in counts.items()}
        axes = {"N": {"x": 0, "y": 0}, "K": {"w": 0, "y": channel}, "C": {"x": channel, "w": channel}}
        arrays = {"x": x, "w": w, "y": y}
        for name, positions in sampled.items():
            for array, axis in axes[name].items():
                arrays[array] = np.take(arrays[array], positions, axis)
        return *arrays.values(), replace(self, **{name: len(positions) for name, positions in sampled.items()})

    @property
    def terms(self) -> int:
        """Greatest number of products that an element of the result sums up."""
        taps, filters = self.R * self.S, self.K // self.groups
        return {"y": self.C // self.groups * taps, "x": filters * taps, "w": self.N * self.P * self.Q}[self.result]

    def oracle(self, *inputs: Float[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Return the result in float64, from the other two arrays in the order x, w, y."""
        arrays = dict(zip([name for name in "xwy" if name != self.result], inputs, strict=True))
        nchw = {name: self._to_nchw(np.asarray(X, np.float64)) for name, X in arrays.items()}
        return self._from_nchw(self._compute(**nchw))

    def _shape(self, first, channels, rows, columns):
        return (first, channels, rows, columns) if self.layout == "NCHW" else (first, rows, columns, channels)

    def _to_nchw(self, X):
        return X if self.layout == "NCHW" else X.transpose(0, 3, 1, 2)

    def _from_nchw(self, X):
        return np.ascontiguousarray(X if self.layout == "NCHW" else X.transpose(0, 2, 3, 1))

    def _taps(self):
        """Yield for each tap: its row and column in the filter, and slices of the pixels under it."""
        for r in range(self.R):
            for s in range(self.S):
                offset = r * self.dilation_h, s * self.dilation_w
                axes = zip(offset, (self.P, self.Q), (self.stride_h, self.stride_w), strict=True)
                rows, columns = (slice(first, first + (count - 1) * step + 1, step) for first, count, step in axes)
                yield (self.R - 1 - r, self.S - 1 - s) if self.flipped else (r, s), rows, columns

    def _padded_zeros(self):
        return np.zeros((self.N, self.C, self.H + self.top + self.bottom, self.W + self.left + self.right))

    def _pad(self, x):
        padded = self._padded_zeros()
        padded[:, :, self.top : self.top + self.H, self.left : self.left + self.W] = x
        return padded

    def _split_groups(self, X, axis):
        """Split the axis of channels or filters into groups."""
        return X.reshape(*X.shape[:axis], self.groups, X.shape[axis] // self.groups, *X.shape[axis + 1 :])


@dataclass(frozen=True)
class Forward(Convolution):
    """The outputs y of images x and filters w."""

    result, _sampled_axes = "y", "NK"

    def _compute(self, x, w):
        x, w = self._split_groups(self._pad(x), 1), self._split_groups(w, 0)
        y = np.zeros((self.N, self.groups, self.K // self.groups, self.P, self.Q))
        for (r, s), rows, columns in self._taps():
            y += np.einsum("ngcpq,gkc->ngkpq", x[..., rows, columns], w[..., r, s], optimize=True)
        return y.reshape(self.N, self.K, self.P, self.Q)


@dataclass(frozen=True)
class ForwardNHWC(Forward):
    """The outputs y of images x and filters w, with channels last by default."""

    layout: Layout = "NHWC"


@dataclass(frozen=True)
class BackwardData(Convolution):
    """The gradient x of the images, from the gradient y of the outputs and the filters w."""

    result, _sampled_axes = "x", "NC"

    def _compute(self, w, y):
        y, w = self._split_groups(y, 1), self._split_groups(w, 0)
        padded = self._padded_zeros()
        x = self._split_groups(padded, 1)
        for (r, s), rows, columns in self._taps():
            x[..., rows, columns] += np.einsum("ngkpq,gkc->ngcpq", y, w[..., r, s], optimize=True)
        return padded[:, :, self.top : self.top + self.H, self.left : self.left + self.W]


@dataclass(frozen=True)
class BackwardDataNHWC(BackwardData):
    """The gradient x of the images, with channels last by default."""

    layout: Layout = "NHWC"


@dataclass(frozen=True)
class BackwardFilter(Convolution):
    """The gradient w of the filters, from the images x and the gradient y of the outputs."""

    result, _sampled_axes = "w", "KC"

    def _compute(self, x, y):
        x, y = self._split_groups(self._pad(x), 1), self._split_groups(y, 1)
        w = np.zeros((self.groups, self.K // self.groups, self.C // self.groups, self.R, self.S))
        for (r, s), rows, columns in self._taps():
            w[..., r, s] = np.einsum("ngcpq,ngkpq->gkc", x[..., rows, columns], y, optimize=True)
        return w.reshape(self.K, self.C // self.groups, self.R, self.S)


@dataclass(frozen=True)
class BackwardFilterNHWC(BackwardFilter):
    """The gradient w of the filters, with channels last by default."""

    layout: Layout = "NHWC"


def _check_stride(stride):
    if stride < 1:
        raise ValueError(f"the stride is {stride}, but it must be at least 1")
