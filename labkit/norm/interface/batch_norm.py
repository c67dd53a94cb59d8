"""Batch norm of images as they lie, in training and in inference, by the step of the ladders that suits them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.arrays.operands import dtype_of, format_held, strides_of, type_name
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP32, Format
from labkit.ladder import Launch
from labkit.norm import problem
from labkit.norm.images import LAYOUTS, Layout, OfImages
from labkit.norm.inference import BatchInference
from labkit.norm.interface.choice import launches_of
from labkit.norm.interface.filled import filled
from labkit.norm.interface.images import as_images, orders, sizes
from labkit.norm.interface.operation import Operation, called
from labkit.norm.problem import BatchForward

FORMATS = FP32, BF16
RUNNING = "running_mean", "running_variance"
MEASURED = "mean", "variance"
LARGEST = float(np.finfo(np.float32).max)


def batch_norm(
    x: Shaped[np.ndarray, "N C *pixels"],
    weight: Float32[np.ndarray, " C"] | None = None,
    bias: Float32[np.ndarray, " C"] | None = None,
    y: Shaped[np.ndarray, "N C *pixels"] | None = None,
    *,
    running_mean: Float32[np.ndarray, " C"] | None = None,
    running_variance: Float32[np.ndarray, " C"] | None = None,
    mean: Float32[np.ndarray, " C"] | None = None,
    variance: Float32[np.ndarray, " C"] | None = None,
    training: bool = True,
    momentum: float | None = 0.1,
    batches: int | None = None,
    eps: float = 1e-5,
    relu: bool = False,
    layout: Layout = "NCHW",
    format: str | Format | None = None,
    stream=0,
) -> Shaped[np.ndarray, "N C *pixels"]:
    """y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel.

    In training the mean and the variance are those of the batch, and the running statistics move towards them; in
    inference they are the running statistics. What is computed and kept is what
    `torch.nn.functional.batch_norm` computes and keeps.

    Parameters
    ----------
    x
        Images N x C x pixels ("NCHW") or N x pixels x C ("NHWC"), of any number of axes of pixels: an array of the
        device (numba's, torch's, or any with `__cuda_array_interface__`), or a NumPy array, which is copied there. It
        holds float32 or bfloat16. On the device its elements follow one another without gaps, channel after channel
        or pixel after pixel, whatever the order of its axes is: a tensor of torch in channels_last is NCHW.
    weight, bias
        A factor and a summand for each channel; None for 1 and 0.
    y
        Where the result goes, in the order of x; x itself will do. If it is None, a new array of the kind that x is.
    running_mean, running_variance
        The running statistics: moved in training, if they are there; read in inference. The variance is the unbiased
        one, divided by one less than there are values.
    mean, variance
        Where the statistics of the batch go, if they are wanted; the variance is divided by the number of values.
    training
        Whether the statistics are those of the batch.
    momentum, batches
        How much the batch counts in the running statistics; or None, for an average of all batches, and how many there
        were before this one.
    eps
        What is added to the variance.
    relu
        Whether what is below zero becomes zero; a NaN stays one.
    layout
        The order of the axes of x and y.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        A stream of `cuda.stream()`, or another one with `__cuda_stream__`. Pass y where it is captured into a graph.

    Returns
    -------
    y. Statistics are float32, and right where a mean is many spreads from zero; the same call gives the same bits each
    time.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not, or some are the host's and some the device's.
    ValueError
        Shapes do not fit, a channel has a single value in training, arrays have gaps, or one that is written shares
        memory with another one.

    Notes
    -----
    The kernels are those of `norm.ladder("batch")`, "channels_last" and "batch_inference"; which of them, is said by
    `labkit.norm.interface.choice`.
    The first call makes a plan, which later ones find again by how their operands lie, unless momentum is None: then
    each batch counts otherwise, and has a plan of its own.
    (Ioffe and Szegedy, Batch Normalization, 2015, algorithms 1 and 2.)

    Examples
    --------
    >>> y = norm.batch_norm(x, weight, bias, running_mean=mean, running_variance=variance, relu=True)
    >>> norm.batch_norm(x, weight, bias, x, running_mean=mean, running_variance=variance, training=False)  # in place
    """
    asked = BatchNorm(training, momentum, batches, eps, relu, layout, format)
    running = {"running_mean": running_mean, "running_variance": running_variance}
    return called(
        asked, {"x": x, "weight": weight, "bias": bias, "y": y, "mean": mean, "variance": variance, **running}, stream
    )


@dataclass(frozen=True)
class BatchNorm(Operation):
    """A batch norm without its arrays; for the options see `batch_norm`."""

    training: bool = True
    momentum: float | None = 0.1
    batches: int | None = None
    eps: float = 1e-5
    relu: bool = False
    layout: Layout = "NCHW"
    format: str | Format | None = None

    arrays, result, alike = problem.ARRAYS, "y", "x"

    def __post_init__(self):
        for name in ("training", "relu"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} is {getattr(self, name)!r}: say True or False")
        if self.layout not in LAYOUTS:
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")
        if not _is_number(self.eps) or self.eps < 0:
            raise ValueError(f"eps is {self.eps!r}: give a number that is not below 0")
        if self.momentum is not None and not _is_number(self.momentum):
            raise ValueError(f"momentum is {self.momentum!r}: give a number, or None for an average of all batches")
        if self.batches is not None and not (_is_whole(self.batches) and self.batches >= 0):
            raise ValueError(f"batches is {self.batches!r}: give how many there were before this one, 0 or more")
        if self.training and self.momentum is None and self.batches is None:
            raise ValueError(
                "momentum is None, which takes the average of all batches: say how many there were before this one, "
                "as batches"
            )

    @property
    def written(self) -> tuple[str, ...]:
        return ("y", *MEASURED, *RUNNING) if self.training else ("y",)

    @property
    def is_asked_again(self) -> bool:
        return not self.training or self.momentum is not None

    def declared(self, given: Mapping[str, object]) -> "BatchNorm":
        return replace(self, format=self.format_of(given["x"]))

    def check(self, given: Mapping[str, object]) -> None:
        x = given["x"]
        if len(x.shape) < 2:
            raise ValueError(f"x is of shape {tuple(x.shape)}: give images, N x C x pixels or N x pixels x C")
        format, asked = self.format_of(x), self.problem_of(x, self.layout)
        for name, X in given.items():
            wanted = tuple(x.shape) if name in ("x", "y") else (asked.C,)
            if tuple(X.shape) != wanted:
                found, needed = (" x ".join(map(str, shape)) or "a number" for shape in (X.shape, wanted))
                raise ValueError(f"{name} is {found}, but {needed} for these images: change it")
            if name == "y" and type_name(X) != type_name(x):
                raise TypeError(f"x holds {type_name(x)} and y {type_name(X)}: make them alike")
            if name not in ("x", "y") and dtype_of(X) != np.float32:
                raise TypeError(f"{name} holds {type_name(X)}, but beside images of {format} it is float32: convert it")
        self._check_statistics(given)
        _check_order({name: X for name, X in given.items() if not isinstance(X, np.ndarray)}, self.layout)

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        format = self.format_of(given["x"])
        order = _order(given, self.layout)
        asked, made, taken = self.problem_of(given["x"], order), [], {}
        for name in asked.arrays:
            if name in ("x", "y"):
                taken[name] = as_images(given[name], self.layout, order)
            elif name in given:
                taken[name] = given[name]
            else:
                taken[name] = workspace.array(f"instead of {name}", (asked.C,), np.float32)
                if name in ("weight", "bias"):
                    made.append(filled(taken[name], float(name == "weight")))
        return made + launches_of(tuple(taken.values()), asked, format, workspace)

    def problem_of(self, x, order: Layout) -> OfImages:
        """The problem of images whose elements follow one another in the order of a layout."""
        of_images = *sizes(tuple(x.shape), self.layout), bool(self.relu), order
        if self.training:
            return BatchForward(*of_images, self.momentum, self.batches or 0, self.eps)
        return BatchInference(*of_images, self.eps)

    def format_of(self, x) -> Format:
        """What images hold; raises where that is not said, or nothing that is normalised."""
        return format_held("x", x, self.format, FORMATS)

    def _check_statistics(self, given):
        running = [name for name in RUNNING if name in given]
        if len(running) == 1:
            raise TypeError(f"{running[0]} stands alone: give both running statistics, or none")
        if not self.training:
            if not running:
                raise TypeError(
                    "running_mean and running_variance are None, and inference normalises by them: give both"
                )
            for name in MEASURED:
                if name in given:
                    raise TypeError(f"{name} is not measured in inference: leave it out, or say training=True")


def _order(given, layout) -> Layout | None:
    """The layout in whose order the elements of x and y follow one another; None if there is none."""
    images = [given[name] for name in ("x", "y") if name in given]
    return next((order for order in orders(images[0], layout) if all(order in orders(X, layout) for X in images)), None)


def _check_order(on_device, layout):
    """Raises ValueError where arrays of the device do not lie as kernels take them."""
    for name, X in on_device.items():
        if name in ("x", "y"):
            if not orders(X, layout):
                raise ValueError(
                    f"{name} has gaps in memory, or axes in an order that is neither NCHW nor NHWC: copy it, "
                    "by layouts.convert for example"
                )
        elif X.shape[0] > 1 and strides_of(X) != (dtype_of(X).itemsize,):
            raise ValueError(f"elements of {name} lie apart in memory: copy it to an array without gaps")
    if "x" in on_device and _order(on_device, layout) is None:
        raise ValueError(
            "x and y lie in different orders, one in that of NCHW and one in that of NHWC: make them alike"
        )


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_whole(value) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
