"""Convolutions of any arrays, by the algorithm that is chosen for their sizes."""

from numbers import Integral

import numpy as np
from jaxtyping import Shaped

from labkit import cuda
from labkit.arrays.addresses import check_own_memory
from labkit.arrays.operands import (
    check_array,
    check_on_device,
    format_of,
    holds,
    new_alike,
    on_device,
    seen,
    sides,
    type_name,
)
from labkit.arrays.workspace import current_device, handle_of, of_stream
from labkit.conv.interface.algorithms import Algorithm, algorithm_named
from labkit.conv.interface.choices import check_asked, chosen, over, planned
from labkit.conv.problem import FILTER_AXES, OPERANDS, BackwardData, BackwardFilter, Convolution, Forward, Layout, pads
from labkit.formats import BF16, FP16, FP32, Format
from labkit.planned import Plan, Remembered

FORMATS = FP32, FP16, BF16  # that arrays declare

Pair = int | tuple[int, int]
Zeros = int | tuple[int, int] | tuple[int, int, int, int] | str

_remembered = Remembered()


def forward(
    x: Shaped[np.ndarray, "N C H W"],
    w: Shaped[np.ndarray, "K C_of_group R S"],
    y: Shaped[np.ndarray, "N K P Q"] | None = None,
    *,
    stride: Pair = 1,
    padding: Zeros = 0,
    dilation: Pair = 1,
    groups: int = 1,
    flipped: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    workspace_limit_bytes: int | None = None,
    stream=0,
) -> Shaped[np.ndarray, "N K P Q"]:
    """The outputs y of images x and filters w.

    Parameters
    ----------
    x, w
        Images and filters: NCHW and KCRS, or NHWC and KRSC, where filters have the channels of their group. Any strides
        will do; what is not in C order, or begins at no multiple of 16 bytes, is copied.
        Arrays of the device (numba's, torch's, or any with `__cuda_array_interface__`), or NumPy arrays, which are
        copied there. Both hold float32, float16 or bfloat16.
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
        A stream of `cuda.stream()`, or another one with `__cuda_stream__`. Pass y where it is captured into a graph.

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
    The algorithm is the one that `find` found fastest for these sizes on this GPU; without that, the one that
    `heuristic` predicts to be. In the simulator it is one that is quickly simulated. Nothing is ever timed here, so a
    new shape costs some milliseconds of planning, and compiling if its kernels are new; the plan is remembered, and the
    next call of that shape finds it. Shapes that vary without end are so planned again and again: pad them to a few.
    Calls on a stream share a workspace, which grows and is never freed, since a captured graph may hold it.

    Examples
    --------
    >>> y = conv.forward(x, w, padding=1)
    >>> conv.forward(x, w, y, stride=2, padding="same", workspace_limit_bytes=0)
    """
    options = stride, padding, dilation, groups, flipped, layout, format, workspace_limit_bytes
    return _computed(Forward, {"x": x, "w": w, "y": y}, None, options, stream)


def backward_data(
    w: Shaped[np.ndarray, "K C_of_group R S"],
    y: Shaped[np.ndarray, "N K P Q"],
    x: Shaped[np.ndarray, "N C H W"] | None = None,
    *,
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
    stream=0,
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
    options = stride, padding, dilation, groups, flipped, layout, format, workspace_limit_bytes
    return _computed(BackwardData, {"x": x, "w": w, "y": y}, (H, W), options, stream)


def backward_filter(
    x: Shaped[np.ndarray, "N C H W"],
    y: Shaped[np.ndarray, "N K P Q"],
    w: Shaped[np.ndarray, "K C_of_group R S"] | None = None,
    *,
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
    stream=0,
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
    options = stride, padding, dilation, groups, flipped, layout, format, workspace_limit_bytes
    return _computed(BackwardFilter, {"x": x, "w": w, "y": y}, (R, S), options, stream)


def plan(
    problem: Convolution,
    x: Shaped[np.ndarray, "N C H W"],
    w: Shaped[np.ndarray, "K C_of_group R S"],
    y: Shaped[np.ndarray, "N K P Q"],
    *,
    format: str | Format | None = None,
    algorithm: str | Algorithm | None = None,
    workspace_limit_bytes: int | None = None,
    stream=0,
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
    arrays = {"x": x, "w": w, "y": y}
    for name, X in arrays.items():
        check_on_device(name, X)
    arrays = {name: on_device(X) for name, X in arrays.items()}
    format = _checked(problem, arrays, format)
    if algorithm is None:
        algorithm = chosen(problem, format, workspace_limit_bytes)
    else:
        algorithm = algorithm_named(algorithm, problem.result)
        made = algorithm.planned(problem, format, workspace_limit_bytes)
        if why := made.misfit or over(made.workspace_bytes, workspace_limit_bytes):
            raise ValueError(f"{algorithm} cannot be taken, since {why}: choose another of heuristic(problem)")
    return planned(algorithm, problem, format, *arrays.values(), workspace_limit_bytes, stream=stream)


def forget() -> None:
    """Forgets the plans that calls remember, since other algorithms may be chosen from now on."""
    _remembered.clear()


def _computed(kind, arrays, size, options, stream):
    """Computes what is left of the three arrays, or has been given to be written."""
    given = [X for X in arrays.values() if X is not None]
    if len(given) < 3 or any(isinstance(X, np.ndarray) for X in given):
        return _with_copies(kind, arrays, size, options, stream)
    key, known, addresses = None, None, []
    try:
        looks = [seen(X) for X in given]
        addresses = [address for _, address in looks]
        asked = tuple(tuple(one) if isinstance(one, list) else one for one in options)
        key = kind, size, asked, *(look for look, _ in looks), handle_of(stream), current_device()
        known = _remembered.get(key)
    except (AttributeError, TypeError, ValueError):  # no arrays, or no options: which, is told below
        pass
    result = arrays[kind.result]
    if known is not None:
        known.run(tuple(given), addresses)
        return result
    problem, format = _asked(kind, arrays, size, options)
    operands = [on_device(X) for X in given]
    limit_bytes = options[-1]
    algorithm = chosen(problem, format, limit_bytes)
    kept = {"workspace": of_stream(stream), "keep": False}
    made = planned(algorithm, problem, format, *operands, limit_bytes, stream=stream, **kept)
    made(*operands)
    if key is not None:
        _remembered.keep(key, made)
    return result


def _with_copies(kind, arrays, size, options, stream):
    """As `_computed`, where there is no array for the result, or arrays are the host's."""
    handle_of(stream)  # or it is none
    problem, format = _asked(kind, arrays, size, options)
    goal, inputs = arrays[kind.result], [X for name, X in arrays.items() if name != kind.result]
    on_host = all(isinstance(X, np.ndarray) for X in (inputs if goal is None else [goal]))
    if on_host or goal is None:
        shape = problem.shapes[kind.result]
        out = cuda.device_array(shape, format.result.dtype) if on_host else new_alike(inputs[0], shape)
    else:
        out = goal
    moved = {name: out if name == kind.result else on_device(X, stream) for name, X in arrays.items()}
    *others, _, limit = options
    _computed(kind, moved, size, (*others, format.name, limit), stream)
    if not on_host:
        return out
    found = out.copy_to_host(stream=stream)
    if stream:
        stream.synchronize()
    if goal is None:
        return found
    goal[...] = found.view(goal.dtype)
    return goal


# --- what is asked for ---------------------------------------------------------------------------


def _asked(kind, arrays, size, options) -> tuple[Convolution, Format]:
    """The problem and the format of a call; raises where it cannot be computed."""
    *of_problem, format, limit = options
    for name, X in arrays.items():
        if X is not None:
            check_array(name, X)
        elif name != kind.result:
            raise TypeError(f"{name}, the {OPERANDS[name]}, is None: give an array")
    shapes = {name: tuple(X.shape) for name, X in arrays.items() if X is not None}
    problem = problem_of(kind, shapes, size, *of_problem)
    format = _checked(problem, arrays, format)
    check_asked(problem, format, limit)
    return problem, format


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
                    f"{axis} is {other_length} in {other} and {length} in {name}: give arrays of one convolution"
                )
            known[axis] = length, name
    sizes = {axis: length for axis, (length, _) in known.items()}
    (groups,) = _whole("groups", groups, (1,), 1)
    if "C_group" in sizes and "C" in sizes and sizes["C_group"] * groups != sizes["C"]:
        raise ValueError(
            f"x has {sizes['C']} channels, but filters of {sizes['C_group']} channels in {groups} group(s) take "
            f"{sizes['C_group'] * groups}: give filters with the channels of one group"
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


def _checked(problem, arrays, format) -> Format:
    """The format; raises where arrays do not have the shapes or hold what they should."""
    given = {name: X for name, X in arrays.items() if X is not None}
    inputs = [name for name in "xwy" if name != problem.result]
    format = format_of(*(given[name] for name in inputs), format, inputs, FORMATS)
    for name, X in given.items():
        shape, wanted = tuple(X.shape), problem.shapes[name]
        if shape != wanted:
            found, needed = map(sides, (shape, wanted))
            raise ValueError(f"{name}, the {OPERANDS[name]}, is {found}, but {needed} in this convolution: change it")
    result = given.get(problem.result)
    if result is None:
        return format
    if not holds(result, format.result):
        raise TypeError(
            f"{problem.result} holds {type_name(result)}, but a convolution of {format} gives {format.result}: "
            "make it one of that"
        )
    if isinstance(result, np.ndarray):
        if not result.flags.writeable:
            raise ValueError(f"{problem.result} is read-only: pass an array that can be written to")
        check_own_memory(problem.result, result)
        for name in inputs:
            if isinstance(given[name], np.ndarray) and np.may_share_memory(given[name], result):
                raise ValueError(
                    f"{problem.result} shares memory with {name}, which is read while {problem.result} is written: "
                    f"give {problem.result} memory of its own"
                )
    return format
