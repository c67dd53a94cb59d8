"""What calls with images, and values for each channel, have in common: their checks, and how steps are given them."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import ClassVar

import numpy as np

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import can_hold, operand_format, order_of_axes, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.workspace import Workspace
from labkit.calls.operation import Operation, Result
from labkit.formats import BF16, FP32, Format
from labkit.ladder import Launch
from labkit.norm.images import LAYOUTS, Layout, OfImages
from labkit.norm.interface.choice import launches_of
from labkit.norm.interface.filled import filled
from labkit.norm.interface.images import as_images, orders, sizes

FORMATS = FP32, BF16
INSTEAD = {"weight": 1.0, "bias": 0.0}  # of what a call leaves out
LARGEST = float(np.finfo(np.float32).max)


class OfChannels(Operation):
    """An operation on images, x among them; a subclass has the options eps, relu, layout and format."""

    images: ClassVar[tuple[str, ...]]  # the other arrays have a value for each channel

    def __post_init__(self):
        check_truth("relu", self.relu)
        if self.layout not in LAYOUTS:
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")
        check_number("eps", self.eps, " that is not below 0", least=0)

    @abstractmethod
    def problem_of(self, *sizes) -> OfImages:
        """The problem of N, C, H, W, ReLU and the layout in whose order elements follow one another."""

    def declared(self, given: Mapping[str, object]) -> "OfChannels":
        return replace(self, format=self._format(given["x"]))

    def check(self, given: Mapping[str, object]) -> None:
        x = given["x"]
        if len(x.shape) < 2:
            raise ValueError(f"x is of shape {tuple(x.shape)}: give images, N x C x pixels or N x pixels x C")
        format, channels = self._format(x), self._problem(x, self.layout).C
        for name, X in given.items():
            is_image = name in self.images
            wanted = tuple(x.shape) if is_image else (channels,)
            if tuple(X.shape) != wanted:
                found, needed = map(shape_text, (X.shape, wanted))
                raise ValueError(f"{name} is {found}, but {needed} for these images: change it")
            if is_image and not can_hold(X, format):
                raise TypeError(f"x holds {type_name(x)} and {name} {type_name(X)}: make them alike")
            if not is_image and dtype_of(X) != np.float32:
                raise TypeError(f"{name} holds {type_name(X)}, but beside images of {format} it is float32: convert it")
        self._check_order({name: X for name, X in given.items() if not owner_of(X).is_on_host(X)})

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        if name in self.images:
            x = given["x"]
            return Result("x", tuple(x.shape), axes=order_of_axes(x))
        return Result("x", (self._problem(given["x"], self.layout).C,), "float32")

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        order = self._order(given)
        problem, made, arrays = self._problem(given["x"], order), [], {}
        for name in problem.arrays:
            if name in self.images:
                arrays[name] = as_images(given[name], self.layout, order)
            elif name in given:
                arrays[name] = given[name]
            else:
                arrays[name] = workspace.array(f"instead of {name}", (problem.C,), np.float32)
                if name in INSTEAD:
                    made.append(filled(arrays[name], INSTEAD[name]))
        return made + launches_of(tuple(arrays.values()), problem, self._format(given["x"]), workspace)

    def _problem(self, x, order: Layout) -> OfImages:
        return self.problem_of(*sizes(tuple(x.shape), self.layout), bool(self.relu), order)

    def _format(self, x) -> Format:
        return operand_format("x", x, self.format, FORMATS)

    def _order(self, given) -> Layout | None:
        """The layout in whose order the elements of all images follow one another; None if there is none."""
        images = [orders(X, self.layout) for name, X in given.items() if name in self.images]
        return next((order for order in images[0] if all(order in each for each in images)), None)

    def _check_order(self, on_device):
        """Raises ValueError where arrays of the device do not lie as kernels take them."""
        for name, X in on_device.items():
            if name in self.images and not orders(X, self.layout):
                raise ValueError(
                    f"{name} has gaps in memory, or axes in an order that is neither NCHW nor NHWC: copy it, "
                    "by layouts.convert for example"
                )
            if name not in self.images and X.shape[0] > 1 and strides_of(X) != (dtype_of(X).itemsize,):
                raise ValueError(f"elements of {name} lie apart in memory: copy it to an array without gaps")
        if "x" in on_device and self._order(on_device) is None:
            names = " and ".join(name for name in on_device if name in self.images)
            raise ValueError(
                f"{names} lie in different orders, some in that of NCHW and some in that of NHWC: make them alike"
            )


def check_truth(name: str, value) -> None:
    """Raises TypeError where an option says neither yes nor no."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}: say True or False")


def check_number(name: str, value, which: str = "", least: float = -LARGEST) -> None:
    """Raises ValueError where an option is no number that float32 holds, or below the least; says which to give."""
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= value <= LARGEST:
        raise ValueError(f"{name} is {value!r}: give a number{which}")
