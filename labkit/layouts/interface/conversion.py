"""`layouts.convert` and `layouts.plan`: images of any strides from one layout to another."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.element_types import dtype_of, have_same_type, type_name
from labkit.arrays.operands import shape_text
from labkit.arrays.views import as_strided
from labkit.arrays.workspace import Workspace
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.calls.plan import Plan, make_plan
from labkit.ladder import Launch
from labkit.layouts.elements import UINT_BY_BYTES
from labkit.layouts.interface.moves import make_copies
from labkit.layouts.problem import Conversion, Layout, check_layout


@dataclass(frozen=True)
class Convert(Operation):
    """See `convert`."""

    source: Layout
    target: Layout
    vector: int = 4
    channels: int | None = None

    arrays, outputs, required = ("x", "y"), ("y",), ("x",)

    def __post_init__(self):
        check_layout(self.source)
        check_layout(self.target)
        if self.channels is not None and not isinstance(self.channels, Integral):
            raise TypeError(f"channels is {self.channels!r}, but it must be a whole number, or None for all")

    def with_format(self, operands: Mapping[str, object]) -> "Convert":
        return self  # without a format, since kernels move bits

    def check(self, operands: Mapping[str, object]) -> None:
        x, problem = operands["x"], self._problem(operands["x"])
        if dtype_of(x).hasobject:
            raise TypeError("x holds Python objects, which no device can read: convert it to numbers")
        if dtype_of(x).itemsize not in UINT_BY_BYTES:
            raise TypeError(f"x holds {type_name(x)}, but elements of 1, 2, 4 or 8 bytes are moved: convert it")
        if "y" not in operands:
            return
        y, needed = operands["y"], problem.shape(problem.target)
        if tuple(y.shape) != needed:
            raise ValueError(
                f"y is {shape_text(y.shape)}, but {problem.target} of these images is {shape_text(needed)}: change it"
            )
        if not have_same_type(x, y):
            raise TypeError(
                f"x holds {type_name(x)} and y {type_name(y)}, but elements are moved as they are: make them alike"
            )

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        problem = self._problem(operands["x"])
        return Result(like="x", shape=problem.shape(problem.target))

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        if 0 in operands["y"].shape:
            return []
        return _launches(operands["x"], operands["y"], self._problem(operands["x"]))

    def _problem(self, x) -> Conversion:
        return make_problem(tuple(x.shape), self.source, self.target, self.vector, self.channels)


@call_of(Convert)
def convert(
    x: Shaped[np.ndarray, "..."],
    source: Layout,
    target: Layout,
    *,
    y: Shaped[np.ndarray, "..."] | None = None,
    vector: int = 4,
    channels: int | None = None,
    stream=None,
) -> Shaped[np.ndarray, "..."]:
    """Convert the images x to another layout.

    Parameters
    ----------
    x
        Images of N x C x H x W ("NCHW"), N x H x W x C ("NHWC"), or N x C/vector x H x W x vector ("NCHW_VECT_C"):
        a device array (of numba, torch, CuPy, or any library with `__cuda_array_interface__`), or a host array (of
        NumPy or torch), which is copied to the device. Any strides are accepted, and elements of 1, 2, 4 or 8 bytes,
        whose bits stay unchanged. The array may be empty.
    source, target
        Layouts of x and of the result.
    y
        Output array, of any strides; None for a new array of x's kind.
    vector
        Channels in the last axis of NCHW_VECT_C: 4 or 32. If they do not divide C, the last vector ends in zeros.
    channels
        Number of channels, if x is NCHW_VECT_C and its last vector is not full; None for all of them.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream; None for the current stream of torch
        and CuPy arrays.

    Returns
    -------
    y.

    Raises
    ------
    TypeError
        x or y is not an array, or their types differ.
    ValueError
        A shape does not fit the layout, a layout is unknown, or y shares memory with x or itself.

    Notes
    -----
    The kernel depends on the arrays' strides: images without gaps move at about the speed of a copy. The first call
    makes a plan, which later calls find.

    Examples
    --------
    >>> channels_last = layouts.convert(x, "NCHW", "NHWC")
    >>> layouts.convert(x, "NCHW", "NCHW_VECT_C", y=y, vector=32)
    """
    return run_operation(Convert, (x, y), (source, target, vector, channels), stream)


def plan(
    x: Shaped[np.ndarray, "..."],
    source: Layout,
    target: Layout,
    *,
    y: Shaped[np.ndarray, "..."],
    vector: int = 4,
    channels: int | None = None,
    stream=None,
) -> Plan:
    """Prepare a conversion once, to run it many times: `plan()`, or `plan(x, y)` for other arrays.

    A run costs the host a few microseconds and allocates nothing; a CUDA graph can capture it on any stream. The
    parameters are those of `convert`; x and y are device arrays.

    Examples
    --------
    >>> plan = layouts.plan(x, "NCHW", "NHWC", y=y)
    >>> plan()
    >>> plan(x2, y2)  # with the same layouts as x and y
    """
    return make_plan(Convert(source, target, vector, channels), {"x": x, "y": y}, stream=stream)


# --- sizes from shapes and options ---------------------------------------------------------------


class MaybeEmpty(Conversion):
    """A conversion of images whose sizes may be 0."""

    min_size = 0


def make_problem(
    shape: tuple[int, ...], source: Layout, target: Layout, vector: int = 4, channels: int | None = None
) -> Conversion:
    """Return the conversion of images of this shape; raise ValueError if the shape does not fit."""
    axes = ("N", "C/vector", "H", "W", "vector") if source == "NCHW_VECT_C" else tuple(source)
    if len(shape) != len(axes):
        raise ValueError(f"x has {len(shape)} axes: {source} has {len(axes)}, {' x '.join(axes)}")
    sizes = dict(zip(axes, shape))
    if source == "NCHW_VECT_C":
        if sizes["vector"] != vector:
            raise ValueError(f"vectors of x have {sizes['vector']} channels, but vector is {vector}: make them agree")
        capacity = sizes["C/vector"] * vector
        sizes["C"] = capacity if channels is None else channels
        problem = MaybeEmpty(*(sizes[axis] for axis in "NCHW"), source, target, vector)
        if not capacity - vector < problem.C <= capacity:
            raise ValueError(
                f"channels is {channels}, but x has room for {capacity - vector + 1} to {capacity}: give one of these"
            )
        return problem
    if channels not in (None, sizes["C"]):
        raise ValueError(f"channels is {channels}, but x has {sizes['C']}: leave it out")
    return MaybeEmpty(*(sizes[axis] for axis in "NCHW"), source, target, vector)


def _launches(x, y, problem) -> list[Launch]:
    """Return the launches of a conversion: whole vectors of channels first, then the last, partly filled one."""
    full, remainder = divmod(problem.C, problem.vector)
    has_vectors = "NCHW_VECT_C" in (problem.source, problem.target)
    if problem.source == problem.target and not (has_vectors and remainder):
        return make_copies(source=x, target=y)
    if not has_vectors:
        return make_copies(source=_view_nchw(x, problem.source), target=_view_nchw(y, problem.target))
    launches = []
    last_written = problem.vector if problem.target == "NCHW_VECT_C" else remainder  # zeros fill the last vector
    whole, last = (0, full, problem.vector, problem.vector), (full, full + 1, remainder, last_written)
    for begin, end, num_read, num_written in (whole, last):
        if num_read and begin < end:
            x_part = _view_vectors(x, problem.source, problem.vector, slice(begin, end), num_read)
            y_part = _view_vectors(y, problem.target, problem.vector, slice(begin, end), num_written)
            launches += make_copies(source=x_part, target=y_part)
    return launches


def _view_nchw(X, layout: Layout):
    axes = (0, 1, 2, 3) if layout == "NCHW" else (0, 3, 1, 2)
    return as_strided(X, tuple(X.shape[axis] for axis in axes), tuple(X.strides[axis] for axis in axes))


def _view_vectors(X, layout: Layout, vector: int, vectors: slice, channels: int):
    """View a range of vectors, and the first `channels` of each, with the axes of NCHW_VECT_C."""
    if layout == "NCHW_VECT_C":
        (N, _, H, W, _), strides = X.shape, X.strides
    else:
        X = _view_nchw(X, layout)
        (N, _, H, W), (image, channel, row, col) = X.shape, X.strides
        strides = image, vector * channel, row, col, channel
    return as_strided(
        X, (N, vectors.stop - vectors.start, H, W, channels), strides, begin_byte=vectors.start * strides[1]
    )
