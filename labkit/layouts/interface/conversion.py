"""Images of any strides from one layout into another."""

from functools import partial
from numbers import Integral

import numpy as np
from jaxtyping import Shaped

from labkit import cuda
from labkit.arrays.addresses import check_own_memory
from labkit.arrays.operands import check_array, check_on_device, dtype_of, new_alike, on_device, seen, sides, type_name
from labkit.arrays.views import viewed
from labkit.arrays.workspace import current_device, handle_of
from labkit.ladder import Launch
from labkit.layouts.elements import BITS
from labkit.layouts.interface.moves import moves
from labkit.layouts.problem import Conversion, Layout, check_layout
from labkit.planned import Plan, Remembered

_remembered = Remembered()


def convert(
    x: Shaped[np.ndarray, "..."],
    source: Layout,
    target: Layout,
    y: Shaped[np.ndarray, "..."] | None = None,
    *,
    vector: int = 4,
    channels: int | None = None,
    stream=0,
) -> Shaped[np.ndarray, "..."]:
    """The images x in another layout.

    Parameters
    ----------
    x
        Images of N x C x H x W ("NCHW"), N x H x W x C ("NHWC"), or N x C/vector x H x W x vector ("NCHW_VECT_C"):
        an array of the device (numba's, torch's, or any with `__cuda_array_interface__`), or a NumPy array, which is
        copied there. Any strides will do, and elements of 1, 2, 4 or 8 bytes, which are moved as they are.
    source, target
        The layout of x, and the one of the result.
    y
        Where the result goes, of any strides; if it is None, a new array of the kind that x is.
    vector
        Channels in the last axis of NCHW_VECT_C: 4 or 32. Where they do not divide C, the last vector ends in zeros.
    channels
        How many there are, where x is NCHW_VECT_C and its last vector is not full; None for all of them.
    stream
        A stream of `cuda.stream()`, or another one with `__cuda_stream__`. Pass y where it is captured into a graph.

    Returns
    -------
    y.

    Raises
    ------
    TypeError
        x or y is no array, or they hold different things.
    ValueError
        A shape does not fit the layout, there is no such layout, or y shares memory with x or itself.

    Notes
    -----
    The way is chosen by how the arrays lie: images without gaps move at about the speed of a copy. The first call makes
    a plan, which later ones find again.

    Examples
    --------
    >>> channels_last = layouts.convert(x, "NCHW", "NHWC")
    >>> layouts.convert(x, "NCHW", "NCHW_VECT_C", y, vector=32)
    """
    options = source, target, vector, channels
    if y is None or any(isinstance(X, np.ndarray) for X in (x, y)):
        return _with_copies(x, y, options, stream)
    key = known = None
    try:
        (of_x, at_x), (of_y, at_y) = seen(x), seen(y)
        key = of_x, of_y, options, handle_of(stream), current_device()
        known = _remembered.get(key)
    except (AttributeError, TypeError, ValueError):  # no arrays, or no options: which, is told below
        pass
    if known is not None:
        known.run((x, y), [at_x, at_y])
        return y
    arrays = _checked(x, y, options)
    made = _planned(*arrays, options, stream, keep=False)
    made(*arrays)
    if key is not None:
        _remembered.keep(key, made)
    return y


def plan(
    x: Shaped[np.ndarray, "..."],
    source: Layout,
    target: Layout,
    y: Shaped[np.ndarray, "..."],
    *,
    vector: int = 4,
    channels: int | None = None,
    stream=0,
) -> Plan:
    """As `convert`, worked out once, to be run many times by calling it: `plan()`, or `plan(x, y)`.

    A plan costs the host a few microseconds a run, allocates nothing then, and can be captured in a CUDA graph on any
    stream. x and y are arrays of the device.

    Examples
    --------
    >>> plan = layouts.plan(x, "NCHW", "NHWC", y)
    >>> plan()
    >>> plan(x2, y2)  # which lie as x and y do
    """
    options = source, target, vector, channels
    return _planned(*_checked(x, y, options), options, stream)


def _planned(x, y, options, stream, **kept) -> Plan:
    return Plan(partial(_launches, options=options), {"x": x, "y": y}, ["y"], stream=stream, **kept)


def _with_copies(x, y, options, stream):
    """As `convert`, where there is no y, or arrays are the host's."""
    handle_of(stream)  # or it is none
    problem = problem_of(x, *options)
    on_host = isinstance(x if y is None else y, np.ndarray)
    goal = y
    if y is not None:
        _check_goal(x, y, problem)
    if on_host:
        y = cuda.device_array(problem.shape(problem.target), dtype_of(x))
    elif y is None:
        y = new_alike(x, problem.shape(problem.target))
    convert(on_device(x, stream), *options[:2], y, vector=options[2], channels=options[3], stream=stream)
    if not on_host:
        return y
    found = y.copy_to_host(stream=stream)
    if stream:
        stream.synchronize()
    if goal is None:
        return found.view(x.dtype)
    goal[...] = found.view(goal.dtype)
    return goal


# --- what is asked for ---------------------------------------------------------------------------


def problem_of(x, source: Layout, target: Layout, vector: int = 4, channels: int | None = None) -> Conversion:
    """The conversion of an array of this shape; raises where there is none."""
    check_array("x", x)
    check_layout(source)
    check_layout(target)
    if channels is not None and not isinstance(channels, Integral):
        raise TypeError(f"channels is {channels!r}, but it must be a whole number, or None for all")
    shape = tuple(x.shape)
    axes = ("N", "C/vector", "H", "W", "vector") if source == "NCHW_VECT_C" else tuple(source)
    if len(shape) != len(axes):
        raise ValueError(f"x has {len(shape)} axes: {source} has {len(axes)}, {' x '.join(axes)}")
    if dtype_of(x).hasobject:
        raise TypeError("x holds Python objects, which no device can read: convert it to numbers")
    if dtype_of(x).itemsize not in BITS:
        raise TypeError(f"x holds {type_name(x)}, but elements of 1, 2, 4 or 8 bytes are moved: convert it")
    sizes = dict(zip(axes, shape))
    if source == "NCHW_VECT_C":
        if sizes["vector"] != vector:
            raise ValueError(f"vectors of x have {sizes['vector']} channels, but vector is {vector}: make them agree")
        most = sizes["C/vector"] * vector
        sizes["C"] = most if channels is None else channels
        problem = Conversion(*(sizes[axis] for axis in "NCHW"), source, target, vector)
        if not most - vector < problem.C <= most:
            raise ValueError(
                f"channels is {channels}, but x has room for {most - vector + 1} to {most}: give one of these"
            )
        return problem
    if channels not in (None, sizes["C"]):
        raise ValueError(f"channels is {channels}, but x has {sizes['C']}: leave it out")
    return Conversion(*(sizes[axis] for axis in "NCHW"), source, target, vector)


def _checked(x, y, options) -> tuple:
    """Both as arrays of the device; raises where they do not fit."""
    problem = problem_of(x, *options)
    for name, X in (("x", x), ("y", y)):
        check_on_device(name, X)
    _check_goal(x, y, problem)
    return on_device(x), on_device(y)


def _check_goal(x, y, problem):
    """Raises where the result cannot be written to y."""
    check_array("y", y)
    if tuple(y.shape) != problem.shape(problem.target):
        found, needed = map(sides, (y.shape, problem.shape(problem.target)))
        raise ValueError(f"y is {found}, but {problem.target} of these images is {needed}: change it")
    if type_name(x) != type_name(y):
        raise TypeError(
            f"x holds {type_name(x)} and y {type_name(y)}, but elements are moved as they are: make them alike"
        )
    if isinstance(y, np.ndarray):
        if not y.flags.writeable:
            raise ValueError("y is read-only: pass an array that can be written to")
        check_own_memory("y", y)
        if isinstance(x, np.ndarray) and np.may_share_memory(x, y):
            raise ValueError("y shares memory with x, which is read while y is written: give y memory of its own")


def _launches(x, y, *, options, workspace) -> list[Launch]:
    problem = problem_of(x, *options)
    full, rest = divmod(problem.C, problem.vector)
    has_vectors = "NCHW_VECT_C" in (problem.source, problem.target)
    if problem.source == problem.target and not (has_vectors and rest):
        return moves(x, y)
    if not has_vectors:
        return moves(_in_nchw(x, problem.source), _in_nchw(y, problem.target))
    made = []
    if full:
        of_source = _in_vectors(x, problem.source, problem.vector, slice(0, full), problem.vector)
        made += moves(of_source, _in_vectors(y, problem.target, problem.vector, slice(0, full), problem.vector))
    if rest:
        to_vectors = problem.target == "NCHW_VECT_C"  # of which the last ends in zeros
        last, written = slice(full, full + 1), problem.vector if to_vectors else rest
        of_source = _in_vectors(x, problem.source, problem.vector, last, rest)
        made += moves(of_source, _in_vectors(y, problem.target, problem.vector, last, written))
    return made


def _in_nchw(X, layout: Layout):
    axes = (0, 1, 2, 3) if layout == "NCHW" else (0, 3, 1, 2)
    return viewed(X, tuple(X.shape[axis] for axis in axes), tuple(X.strides[axis] for axis in axes))


def _in_vectors(X, layout: Layout, vector: int, which: slice, channels: int):
    """Some vectors of channels, and so many channels of each, with the axes of NCHW_VECT_C."""
    if layout == "NCHW_VECT_C":
        (N, _, H, W, _), strides = X.shape, X.strides
    else:
        X = _in_nchw(X, layout)
        (N, _, H, W), (image, channel, row, col) = X.shape, X.strides
        strides = image, vector * channel, row, col, channel
    return viewed(X, (N, which.stop - which.start, H, W, channels), strides, begin_byte=which.start * strides[1])
