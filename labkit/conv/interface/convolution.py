"""Public functions of convolution: each chooses an algorithm for the sizes of its arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.element_types import type_name
from labkit.arrays.operands import TYPE_NAMES, as_device_array, can_hold, common_format, shape_text
from labkit.arrays.workspace import Workspace
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.calls.plan import Plan, make_plan
from labkit.conv.interface.algorithms import Algorithm, find_algorithm
from labkit.conv.interface.choices import check_options, choose, make_launches, workspace_misfit
from labkit.conv.problem import FILTER_AXES, OPERANDS, BackwardData, BackwardFilter, Convolution, Forward, Layout, pads
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch

FORMATS = FP32, FP16, BF16  # that array types declare

Pair = int | tuple[int, int]
Zeros = int | tuple[int, int] | tuple[int, int, int, int] | str


class ConvOperation(Operation):
    """A convolution without its arrays; a subclass has the options format and workspace_limit_bytes."""

    arrays = "x", "w", "y"
    algorithm: Algorithm | None = None  # None for the fastest

    def make_problem(self, operands: Mapping[str, object]) -> Convolution:
        """Return the problem of these arrays; raise ValueError if they fit none."""
        raise NotImplementedError

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name in self.arrays if name not in self.outputs)

    def with_format(self, operands: Mapping[str, object]) -> "ConvOperation":
        return replace(self, format=self.find_format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        _check_arrays(self.make_problem(operands), operands, self.find_format(operands))

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        format, like = self.find_format(operands), self.required[0]  # the first input, whose kind the result has
        is_bits = type_name(operands[like]) not in TYPE_NAMES.values()  # the type does not say what the bits mean
        shape = self.make_problem(operands).shapes[name]
        return Result(like, shape, type_name=str(format.result.dtype) if is_bits else TYPE_NAMES[format.result])

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        problem, limit_bytes = self.make_problem(operands), self.workspace_limit_bytes
        algorithm = self.algorithm or choose(problem, self.format, limit_bytes)
        return make_launches(algorithm, problem, self.format, operands, workspace, limit_bytes)

    def find_format(self, operands: Mapping[str, object]) -> Format:
        """Return the format of the inputs, from the option or from the arrays' types."""
        return common_format(*(operands[name] for name in self.required), self.format, self.required, FORMATS)


@dataclass(frozen=True)
class ConvByShapes(ConvOperation):
    """A convolution whose sizes come from the shapes of its arrays."""

    stride: Pair = 1
    padding: Zeros = 0
    dilation: Pair = 1
    groups: int = 1
    flipped: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None
    workspace_limit_bytes: int | None = None

    kind: ClassVar[type[Convolution]]
    size: ClassVar = None  # rows and columns of the result, for a missing output

    def make_problem(self, operands: Mapping[str, object]) -> Convolution:
        shapes = {name: tuple(X.shape) for name, X in operands.items()}
        options = self.stride, self.padding, self.dilation, self.groups, self.flipped, self.layout
        problem = make_problem(self.kind, shapes, self.size, *options)
        check_options(problem, "float32" if self.format is None else self.format, self.workspace_limit_bytes)
        return problem


@dataclass(frozen=True)
class ForwardOperation(ConvByShapes):
    """See `forward`."""

    kind, outputs = Forward, ("y",)


@dataclass(frozen=True)
class BackwardDataOperation(ConvByShapes):
    """See `backward_data`."""

    H: int | None = None
    W: int | None = None

    kind, outputs = BackwardData, ("x",)
    size = property(lambda self: (self.H, self.W))


@dataclass(frozen=True)
class BackwardFilterOperation(ConvByShapes):
    """See `backward_filter`."""

    R: int | None = None
    S: int | None = None

    kind, outputs = BackwardFilter, ("w",)
    size = property(lambda self: (self.R, self.S))


@dataclass(frozen=True)
class ConvByProblem(ConvOperation):
    """A convolution of a problem by a given algorithm, or by the fastest; see `plan`."""

    problem: Convolution
    format: str | Format | None = None
    algorithm: Algorithm | None = None
    workspace_limit_bytes: int | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.problem.result,)

    def make_problem(self, operands: Mapping[str, object]) -> Convolution:
        return self.problem


@call_of(ForwardOperation)
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
    """Convolve images x with filters w.

    Parameters
    ----------
    x, w
        Images and filters: NCHW and KCRS, or NHWC and KRSC. Filters have the channels of their group. Any strides are
        accepted; an array that is not in C order, or not aligned to 16 bytes, is copied.
        Device arrays (of numba, torch, or any library with `__cuda_array_interface__`) are used directly. Host arrays
        (of NumPy or torch) are copied to the device. Both hold float32, float16 or bfloat16.
    y
        Output array; None for a new array of x's kind.
    stride, dilation
        Pixels from one output to the next, and from one tap to the next: a number, or one for rows and one for columns.
    padding
        Zeros around an image: a number, one for rows and one for columns, or (top, bottom, left, right); or "valid",
        "same", "full" (`conv.pads`).
    groups
        Groups of channels and filters: a filter uses only the channels of its own group.
    flipped
        Rotate filters by 180 degrees: convolution as in mathematics. By default this is cross-correlation.
    format
        Format of arrays of bits: "bfloat16" for uint16. Otherwise the type says it.
    workspace_limit_bytes
        Most memory, beyond the operands, that the algorithm may use; None for no limit, 0 for none. Copies of arrays
        in another order are not counted.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream; None for the current stream of torch
        and CuPy arrays. Pass y if a graph captures the call, unless x is a torch tensor.

    Returns
    -------
    y. Sums are float32, rounded once to y's format. Equal calls give equal bits: every algorithm adds in a fixed order.

    Raises
    ------
    TypeError
        An operand is not an array, formats differ, or a format is not supported.
    ValueError
        Sizes do not fit, y shares memory with x or w, or no algorithm computes this within the limit.

    Notes
    -----
    The algorithm is the one that `find` measured as fastest for these sizes on this GPU. Without one, recorded times
    decide, then the prediction of `heuristic`. The simulator uses an algorithm that it runs quickly. No call times
    anything: a new shape costs milliseconds of planning, and compilation if its kernels are new. Later calls of that
    shape find the plan. Pad shapes that vary without end to a few.

    Examples
    --------
    >>> y = conv.forward(x, w, padding=1)
    >>> conv.forward(x, w, y=y, stride=2, padding="same", workspace_limit_bytes=0)
    """
    options = *_hashable(stride, padding, dilation), groups, flipped, layout, format, workspace_limit_bytes
    return run_operation(ForwardOperation, (x, w, y), options, stream)


@call_of(BackwardDataOperation)
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
    """Compute the gradient x of the images, from filters w and the gradient y of the outputs.

    Parameters
    ----------
    x
        Output array; None for a new array of y's kind.
    H, W
        Rows and columns of the images, needed if x is None: several sizes may give the same outputs.

    All other parameters are those of `forward`.

    Examples
    --------
    >>> x = conv.backward_data(w, y, H=56, W=56, padding=1)
    """
    options = *_hashable(stride, padding, dilation), groups, flipped, layout, format, workspace_limit_bytes, H, W
    return run_operation(BackwardDataOperation, (x, w, y), options, stream)


@call_of(BackwardFilterOperation)
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
    """Compute the gradient w of the filters, from images x and the gradient y of the outputs.

    Parameters
    ----------
    w
        Output array; None for a new array of x's kind.
    R, S
        Rows and columns of taps, needed if w is None.

    All other parameters are those of `forward`.

    Examples
    --------
    >>> w = conv.backward_filter(x, y, R=3, S=3, padding=1)
    """
    options = *_hashable(stride, padding, dilation), groups, flipped, layout, format, workspace_limit_bytes, R, S
    return run_operation(BackwardFilterOperation, (x, w, y), options, stream)


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
    """Prepare a convolution once, to run it many times: `plan()`, or `plan(x, w, y)` for other arrays.

    A plan owns its workspace. A run costs the host a few microseconds and allocates nothing; a CUDA graph can capture
    it on any stream. It writes the one of x, w and y that the problem computes.

    Parameters
    ----------
    problem
        A `Forward`, `BackwardData` or `BackwardFilter`.
    x, w, y
        Images, filters and outputs: device arrays.
    algorithm
        Name from `heuristic(problem)`, such as "winograd/f4x4"; None for the best.

    All other parameters are those of `forward`.

    Raises
    ------
    TypeError, ValueError
        As for `forward`; or the algorithm does not compute this, or needs more workspace than the limit.

    Examples
    --------
    >>> layer = conv.Forward(N=64, C=256, H=56, W=56, K=256, R=3, S=3, top=1, bottom=1, left=1, right=1)
    >>> plan = conv.plan(layer, x, w, y)
    >>> plan()
    >>> plan(x2, w, y2)  # with the same layouts as x and y
    """
    check_options(problem, "float32" if format is None else format, workspace_limit_bytes)
    if algorithm is not None:
        algorithm = find_algorithm(algorithm, problem.result)
        arrays = {name: as_device_array(name, X) for name, X in (("x", x), ("w", w), ("y", y))}
        format = ConvByProblem(problem, format).find_format(arrays)
        run = algorithm.dry_run(problem, format, workspace_limit_bytes)
        if why := run.misfit or workspace_misfit(run.workspace_bytes, workspace_limit_bytes):
            raise ValueError(f"{algorithm} cannot be taken, since {why}: choose another of heuristic(problem)")
    operation = ConvByProblem(problem, format, algorithm, workspace_limit_bytes)
    return make_plan(operation, {"x": x, "w": w, "y": y}, stream=stream)


def _hashable(*options) -> tuple:
    return tuple(tuple(option) if isinstance(option, list) else option for option in options)


# --- sizes from shapes and options ---------------------------------------------------------------


def make_problem(
    kind, shapes, size=None, stride=1, padding=0, dilation=1, groups=1, flipped=False, layout="NCHW"
) -> Convolution:
    """Return the problem of arrays with these shapes, by their names; raise ValueError if they fit none."""
    if layout not in tuple(FILTER_AXES):
        raise ValueError(f"there is no layout {layout!r}: say NCHW or NHWC")
    lengths = {}  # by axis, with the array that has it
    for name, shape in shapes.items():
        axes = {"x": layout, "w": FILTER_AXES[layout], "y": layout.translate(str.maketrans("CHW", "KPQ"))}[name]
        if len(shape) != 4:
            raise ValueError(f"{name}, the {OPERANDS[name]}, has {len(shape)} axes: give four, {axes}")
        for axis, length in zip(axes, shape):
            axis = "C_group" if name == "w" and axis == "C" else axis
            other_length, other = lengths.setdefault(axis, (length, name))
            if other_length != length:
                raise ValueError(
                    f"{axis} is {other_length} in {other} and {length} in {name}: give arrays of one convolution, "
                    f"filters as {FILTER_AXES[layout]}"
                )
    sizes = {axis: length for axis, (length, _) in lengths.items()}
    (groups,) = _integers("groups", groups, (1,), 1)
    if "C_group" in sizes and "C" in sizes and sizes["C_group"] * groups != sizes["C"]:
        raise ValueError(
            f"x has {sizes['C']} channels, but filters of {sizes['C_group']} channels in {groups} group(s) take "
            f"{sizes['C_group'] * groups}: give filters as {FILTER_AXES[layout]}, with the channels of one group"
        )
    if "C" not in sizes:
        sizes["C"] = sizes["C_group"] * groups
    for axis, length in zip("HW" if kind is BackwardData else "RS", size or ()):
        if length is not None:
            (length,) = _integers(axis, length, (1,), 1)
        if sizes.setdefault(axis, length) is None:
            raise ValueError(f"{axis} is not known, since there is no {kind.result}: give {axis}, or the array")
        if length is not None and length != sizes[axis]:
            raise ValueError(f"{axis} is {length}, but {sizes[axis]} in {kind.result}: give one of them")
    strides, dilations = _integers("stride", stride, (1, 2), 1), _integers("dilation", dilation, (1, 2), 1)
    top, bottom, left, right = _zeros(padding, sizes, strides, dilations)
    return kind(
        *(sizes[axis] for axis in "NCHWKRS"),
        *(strides[0], strides[-1], top, bottom, left, right, dilations[0], dilations[-1]),
        *(groups, flipped, layout),
    )


def _zeros(padding, sizes, strides, dilations) -> tuple[int, int, int, int]:
    """Return the rows of zeros above and below an image, and the columns on its left and right."""
    if isinstance(padding, str):
        axes = (sizes["H"], sizes["R"], strides[0], dilations[0]), (sizes["W"], sizes["S"], strides[-1], dilations[-1])
        return tuple(zeros for axis in axes for zeros in pads(padding, *axis))
    zeros = _integers("padding", padding, (1, 2, 4), 0, ", or valid, same or full")
    return zeros if len(zeros) == 4 else (zeros[0], zeros[0], zeros[-1], zeros[-1])


COUNTS = {(1,): "one", (1, 2): "one or two", (1, 2, 4): "one, two or four"}  # of an option's integers, in words


def _integers(name, value, counts, least, otherwise="") -> tuple[int, ...]:
    """Return the integers of an option, which may be a single one; raise if their number or a value is wrong."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    are_valid = all(isinstance(n, Integral) and not isinstance(n, bool) and n >= least for n in values)
    if not are_valid or len(values) not in counts:
        numbers = "whole number" if counts == (1,) else "whole numbers"
        raise ValueError(f"{name} is {value!r}: give {COUNTS[counts]} {numbers} from {least} on{otherwise}")
    return tuple(map(int, values))


def _check_arrays(problem, arrays, format) -> None:
    """Raise if an array has another shape or format than the problem."""
    for name, X in arrays.items():
        shape, needed = tuple(X.shape), problem.shapes[name]
        if shape != needed:
            raise ValueError(
                f"{name}, the {OPERANDS[name]}, is {shape_text(shape)}, but {shape_text(needed)}, "
                f"{problem.axes[name]}, in this convolution: change it"
            )
    result = arrays.get(problem.result)
    if result is not None and not can_hold(result, format.result):
        raise TypeError(
            f"{problem.result} holds {type_name(result)}, but a convolution of {format} gives {format.result}: "
            "make it one of that"
        )
