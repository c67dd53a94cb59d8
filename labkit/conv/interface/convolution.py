"""Convolutions of any arrays, by the algorithm that is chosen for their sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.element_types import type_name
from labkit.arrays.operands import TYPE_NAMES, as_device_array, can_hold, common_format, shape_text
from labkit.arrays.workspace import Workspace
from labkit.calls.call import call
from labkit.calls.operation import Operation, Result, calls
from labkit.calls.plan import Plan, make_plan
from labkit.conv.interface.algorithms import Algorithm, algorithm_named
from labkit.conv.interface.choices import check_asked, chosen, launches_of, over
from labkit.conv.problem import FILTER_AXES, OPERANDS, BackwardData, BackwardFilter, Convolution, Forward, Layout, pads
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch

FORMATS = FP32, FP16, BF16  # that arrays declare

Pair = int | tuple[int, int]
Zeros = int | tuple[int, int] | tuple[int, int, int, int] | str


class Convolving(Operation):
    """A convolution without its arrays; a subclass has the options format and workspace_limit_bytes."""

    arrays = "x", "w", "y"
    algorithm: Algorithm | None = None  # None for the fastest

    def problem_of(self, given: Mapping[str, object]) -> Convolution:
        """The problem of these arrays; raises where they make none."""
        raise NotImplementedError

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name in self.arrays if name not in self.outputs)

    def declared(self, given: Mapping[str, object]) -> "Convolving":
        return replace(self, format=self._format(given))

    def check(self, given: Mapping[str, object]) -> None:
        _check_arrays(self.problem_of(given), given, self._format(given))

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        format, like = self._format(given), self.required[0]
        is_bits = type_name(given[like]) not in TYPE_NAMES.values()  # which say nothing of what they stand for
        shape = self.problem_of(given).shapes[name]
        return Result(like, shape, str(format.result.dtype) if is_bits else TYPE_NAMES[format.result])

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        problem, limit_bytes = self.problem_of(given), self.workspace_limit_bytes
        algorithm = self.algorithm or chosen(problem, self.format, limit_bytes)
        return launches_of(algorithm, problem, self.format, given, workspace, limit_bytes)

    def _format(self, given) -> Format:
        return common_format(*(given[name] for name in self.required), self.format, self.required, FORMATS)


class OfSizes(Convolving):
    """A convolution whose problem is told by its arrays; a subclass has the options of `forward`."""

    kind: ClassVar[type[Convolution]]
    size: tuple[int | None, int | None] | None = None  # of the result, where there is no array for it

    def problem_of(self, given: Mapping[str, object]) -> Convolution:
        shapes = {name: tuple(X.shape) for name, X in given.items()}
        of_problem = self.stride, self.padding, self.dilation, self.groups, self.flipped, self.layout
        problem = problem_of(self.kind, shapes, self.size, *of_problem)
        check_asked(problem, "float32" if self.format is None else self.format, self.workspace_limit_bytes)
        return problem


@dataclass(frozen=True)
class Outputs(OfSizes):
    """See `forward`."""

    stride: Pair = 1
    padding: Zeros = 0
    dilation: Pair = 1
    groups: int = 1
    flipped: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None
    workspace_limit_bytes: int | None = None

    kind, outputs = Forward, ("y",)


@dataclass(frozen=True)
class ImageGradient(OfSizes):
    """See `backward_data`."""

    H: int | None = None
    W: int | None = None
    stride: Pair = 1
    padding: Zeros = 0
    dilation: Pair = 1
    groups: int = 1
    flipped: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None
    workspace_limit_bytes: int | None = None

    kind, outputs = BackwardData, ("x",)
    size = property(lambda self: (self.H, self.W))


@dataclass(frozen=True)
class FilterGradient(OfSizes):
    """See `backward_filter`."""

    R: int | None = None
    S: int | None = None
    stride: Pair = 1
    padding: Zeros = 0
    dilation: Pair = 1
    groups: int = 1
    flipped: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None
    workspace_limit_bytes: int | None = None

    kind, outputs = BackwardFilter, ("w",)
    size = property(lambda self: (self.R, self.S))


@dataclass(frozen=True)
class OfProblem(Convolving):
    """A convolution of a problem, by an algorithm or by the fastest; see `plan`."""

    problem: Convolution
    format: str | Format | None = None
    algorithm: Algorithm | None = None
    workspace_limit_bytes: int | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.problem.result,)

    def problem_of(self, given: Mapping[str, object]) -> Convolution:
        return self.problem


@calls(Outputs)
def forward(
    x: Shaped[np.ndarray, "N C H W"],
    w: Shaped[np.ndarray, "K C_of_group R S"],
    *,
    y: Shaped[np.ndarray, "N K P Q"] | None = None,
    stride: Pair = 1,
    padding: Zeros = 0,
    dilation: Pair = 1,
    groups: int = 1,
    flipped: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    workspace_limit_bytes: int | None = None,
    stream=None,
) -> Shaped[np.ndarray, "N K P Q"]:
    """The outputs y of images x and filters w.

    Parameters
    ----------
    x, w
        Images and filters: NCHW and KCRS, or NHWC and KRSC, where filters have the channels of their group. Any strides
        will do; what is not in C order, or begins at no multiple of 16 bytes, is copied.
        Arrays of the device (numba's, torch's, or any with `__cuda_array_interface__`), or of the host (NumPy's or
        torch's), which are copied there. Both hold float32, float16 or bfloat16.
    y
        Where the outputs go; if it is None, a new array of the kind that x is.
    stride, dilation
        Pixels from one output to the next, and from one tap to the next: a number, or one for rows and one for columns.
    padding
        Zeros around an image: a number, one for rows and one for columns, or (top, bottom, left, right); or "valid",
        "same", "full" (`conv.pads`).
    groups
        Groups of channels and filters: a filter sees the channels of its own group alone.
    flipped
        Whether filters are turned by half a turn, as mathematics has it; else this is cross-correlation.
    format
        What arrays of bits hold: "bfloat16" (uint16). Otherwise their type says it.
    workspace_limit_bytes
        The most memory beside the operands that the algorithm may take; None for as much as it wants, 0 for none.
        Copies of arrays that lie in another order come on top.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays. Pass y where it is captured into a graph, unless x is a tensor of torch.

    Returns
    -------
    y. Sums are float32, and are rounded to y's format once. The same call gives the same bits each time: every
    algorithm adds in a fixed order.

    Raises
    ------
    TypeError
        An operand is no array, or they hold different things, or something that is not convolved.
    ValueError
        Sizes do not fit; y shares memory with x or w; or no algorithm computes this within the limit.

    Notes
    -----
    The algorithm is the one that `find` found fastest for these sizes on this GPU; else the one that was recorded as
    the fastest for them; else the one that `heuristic` predicts. The simulator takes one that it runs quickly. No call
    times anything: a new shape costs milliseconds of planning, and compiling if its kernels are new. Later calls of
    that shape find the plan. Pad shapes that vary without end to a few.

    Examples
    --------
    >>> y = conv.forward(x, w, padding=1)
    >>> conv.forward(x, w, y=y, stride=2, padding="same", workspace_limit_bytes=0)
    """
    stride, padding, dilation = map(_hashable, (stride, padding, dilation))
    options = stride, padding, dilation, groups, flipped, layout, format, workspace_limit_bytes
    return call(Outputs, (x, w, y), options, stream)


@calls(ImageGradient)
def backward_data(
    w: Shaped[np.ndarray, "K C_of_group R S"],
    y: Shaped[np.ndarray, "N K P Q"],
    *,
    x: Shaped[np.ndarray, "N C H W"] | None = None,
    H: int | None = None,
    W: int | None = None,
    stride: Pair = 1,
    padding: Zeros = 0,
    dilation: Pair = 1,
    groups: int = 1,
    flipped: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    workspace_limit_bytes: int | None = None,
    stream=None,
) -> Shaped[np.ndarray, "N C H W"]:
    """The gradient x of the images, of filters w and the gradient y of the outputs.

    Parameters
    ----------
    x
        Where it goes; if it is None, a new array of the kind that y is.
    H, W
        Rows and columns of the images, where there is no x that tells them: several sizes may give the same outputs.

    All else is as for `forward`.

    Examples
    --------
    >>> x = conv.backward_data(w, y, H=56, W=56, padding=1)
    """
    stride, padding, dilation = map(_hashable, (stride, padding, dilation))
    options = H, W, stride, padding, dilation, groups, flipped, layout, format, workspace_limit_bytes
    return call(ImageGradient, (x, w, y), options, stream)


@calls(FilterGradient)
def backward_filter(
    x: Shaped[np.ndarray, "N C H W"],
    y: Shaped[np.ndarray, "N K P Q"],
    *,
    w: Shaped[np.ndarray, "K C_of_group R S"] | None = None,
    R: int | None = None,
    S: int | None = None,
    stride: Pair = 1,
    padding: Zeros = 0,
    dilation: Pair = 1,
    groups: int = 1,
    flipped: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    workspace_limit_bytes: int | None = None,
    stream=None,
) -> Shaped[np.ndarray, "K C_of_group R S"]:
    """The gradient w of the filters, of images x and the gradient y of the outputs.

    Parameters
    ----------
    w
        Where it goes; if it is None, a new array of the kind that x is.
    R, S
        Rows and columns of the filters' taps, where there is no w that tells them.

    All else is as for `forward`.

    Examples
    --------
    >>> w = conv.backward_filter(x, y, R=3, S=3, padding=1)
    """
    stride, padding, dilation = map(_hashable, (stride, padding, dilation))
    options = R, S, stride, padding, dilation, groups, flipped, layout, format, workspace_limit_bytes
    return call(FilterGradient, (x, w, y), options, stream)


def plan(
    problem: Convolution,
    x: Shaped[np.ndarray, "N C H W"],
    w: Shaped[np.ndarray, "K C_of_group R S"],
    y: Shaped[np.ndarray, "N K P Q"],
    *,
    format: str | Format | None = None,
    algorithm: str | Algorithm | None = None,
    workspace_limit_bytes: int | None = None,
    stream=None,
) -> Plan:
    """A convolution worked out once, to be run many times by calling it: `plan()`, or `plan(x, w, y)`.

    A plan owns its workspace, costs the host a few microseconds a run, allocates nothing then, and can be captured in a
    CUDA graph on any stream. The one of x, w and y that the problem computes is written.

    Parameters
    ----------
    problem
        A `Forward`, `BackwardData` or `BackwardFilter`.
    x, w, y
        Images, filters and outputs: arrays of the device.
    algorithm
        One of those that `heuristic(problem)` lists, such as "winograd/f4x4"; None for the best.

    Further parameters are those of `forward`.

    Raises
    ------
    TypeError, ValueError
        As `forward`; or the algorithm does not compute this, or needs more workspace than the limit.

    Examples
    --------
    >>> layer = conv.Forward(N=64, C=256, H=56, W=56, K=256, R=3, S=3, top=1, bottom=1, left=1, right=1)
    >>> plan = conv.plan(layer, x, w, y)
    >>> plan()
    >>> plan(x2, w, y2)  # which lie as x and y do
    """
    check_asked(problem, "float32" if format is None else format, workspace_limit_bytes)
    if algorithm is not None:
        algorithm = algorithm_named(algorithm, problem.result)
        arrays = {name: as_device_array(name, X) for name, X in (("x", x), ("w", w), ("y", y))}
        made = algorithm.planned(problem, OfProblem(problem, format)._format(arrays), workspace_limit_bytes)
        if why := made.misfit or over(made.workspace_bytes, workspace_limit_bytes):
            raise ValueError(f"{algorithm} cannot be taken, since {why}: choose another of heuristic(problem)")
    operation = OfProblem(problem, format, algorithm, workspace_limit_bytes)
    return make_plan(operation, {"x": x, "w": w, "y": y}, stream=stream)


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


# --- what is asked for ---------------------------------------------------------------------------


def problem_of(
    kind, shapes, size=None, stride=1, padding=0, dilation=1, groups=1, flipped=False, layout="NCHW"
) -> Convolution:
    """The problem of arrays with these shapes, by their names; raises where they make none."""
    if layout not in tuple(FILTER_AXES):
        raise ValueError(f"there is no layout {layout!r}: say NCHW or NHWC")
    known = {}  # how many there are along each axis, and who says so
    for name, shape in shapes.items():
        axes = {"x": layout, "w": FILTER_AXES[layout], "y": layout.translate(str.maketrans("CHW", "KPQ"))}[name]
        if len(shape) != 4:
            raise ValueError(f"{name}, the {OPERANDS[name]}, has {len(shape)} axes: give four, {axes}")
        for axis, length in zip(axes, shape):
            axis = "C_group" if name == "w" and axis == "C" else axis
            if axis in known and known[axis][0] != length:
                other_length, other = known[axis]
                raise ValueError(
                    f"{axis} is {other_length} in {other} and {length} in {name}: give arrays of one convolution, "
                    f"filters as {FILTER_AXES[layout]}"
                )
            known[axis] = length, name
    sizes = {axis: length for axis, (length, _) in known.items()}
    (groups,) = _whole("groups", groups, (1,), 1)
    if "C_group" in sizes and "C" in sizes and sizes["C_group"] * groups != sizes["C"]:
        raise ValueError(
            f"x has {sizes['C']} channels, but filters of {sizes['C_group']} channels in {groups} group(s) take "
            f"{sizes['C_group'] * groups}: give filters as {FILTER_AXES[layout]}, with the channels of one group"
        )
    if "C" not in sizes:
        sizes["C"] = sizes["C_group"] * groups
    for axis, length in zip("HW" if kind is BackwardData else "RS", size or ()):
        if length is not None:
            (length,) = _whole(axis, length, (1,), 1)
        if sizes.setdefault(axis, length) is None:
            raise ValueError(f"{axis} is not known, since there is no {kind.result}: give {axis}, or the array")
        if length is not None and length != sizes[axis]:
            raise ValueError(f"{axis} is {length}, but {sizes[axis]} in {kind.result}: give one of them")
    strides, dilations = _whole("stride", stride, (1, 2), 1), _whole("dilation", dilation, (1, 2), 1)
    top, bottom, left, right = _zeros(padding, sizes, strides, dilations)
    return kind(
        *(sizes[axis] for axis in "NCHWKRS"),
        *(strides[0], strides[-1], top, bottom, left, right, dilations[0], dilations[-1]),
        *(groups, flipped, layout),
    )


def _zeros(padding, sizes, strides, dilations) -> tuple[int, int, int, int]:
    """Rows above and below an image, and columns on its left and right."""
    if isinstance(padding, str):
        along = (sizes["H"], sizes["R"], strides[0], dilations[0]), (sizes["W"], sizes["S"], strides[-1], dilations[-1])
        return tuple(zeros for axis in along for zeros in pads(padding, *axis))
    zeros = _whole("padding", padding, (1, 2, 4), 0, ", or valid, same or full")
    return zeros if len(zeros) == 4 else (zeros[0], zeros[0], zeros[-1], zeros[-1])


COUNTS = {(1,): "one", (1, 2): "one or two", (1, 2, 4): "one, two or four"}


def _whole(name, value, counts, least, otherwise="") -> tuple[int, ...]:
    """So many whole numbers; one alone need not stand in a tuple."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    right = all(isinstance(one, Integral) and not isinstance(one, bool) and one >= least for one in values)
    if not right or len(values) not in counts:
        numbers = "whole number" if counts == (1,) else "whole numbers"
        raise ValueError(f"{name} is {value!r}: give {COUNTS[counts]} {numbers} from {least} on{otherwise}")
    return tuple(map(int, values))


def _check_arrays(problem, given, format):
    """Raises where arrays do not have the shapes or hold what they should."""
    for name, X in given.items():
        shape, wanted = tuple(X.shape), problem.shapes[name]
        if shape != wanted:
            found, needed = map(shape_text, (shape, wanted))
            raise ValueError(
                f"{name}, the {OPERANDS[name]}, is {found}, but {needed}, {problem.axes[name]}, in this convolution: "
                "change it"
            )
    result = given.get(problem.result)
    if result is not None and not can_hold(result, format.result):
        raise TypeError(
            f"{problem.result} holds {type_name(result)}, but a convolution of {format} gives {format.result}: "
            "make it one of that"
        )
