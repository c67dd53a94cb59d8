"""The base of all operations on images with one value per channel: their checks and launches."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import ClassVar

import numpy as np

from labkit.arrays.checks import check_arrays
from labkit.arrays.element_types import dtype_of
from labkit.arrays.operands import operand_format, order_of_axes, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.workspace import Workspace
from labkit.calls.operation import Operation, Result
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch
from labkit.norm.images import LAYOUTS, ImageProblem, Layout
from labkit.norm.interface.choice import choose_step
from labkit.norm.interface.fill import fill_launch
from labkit.norm.interface.images import as_images, image_sizes, memory_layouts

FORMATS = FP32, BF16, FP16
DEFAULTS = {"weight": 1.0, "bias": 0.0}  # values of missing operands
MAX_FLOAT32 = float(np.finfo(np.float32).max)


class ImageOperation(Operation):
    """An operation on images, x among them; a subclass has the options eps, relu, layout and format."""

    image_arrays: ClassVar[tuple[str, ...]]  # the other arrays have one value per channel

    def __post_init__(self):
        check_bool("relu", self.relu)
        if self.layout not in LAYOUTS:
            raise ValueError(f"there is no layout {self.layout!r}: say NCHW or NHWC")
        check_number("eps", self.eps, condition=" that is not below 0", least=0)

    @abstractmethod
    def make_problem(self, *sizes) -> ImageProblem:
        """Return the problem of N, C, H, W, ReLU and the layout in whose order elements are stored."""

    def with_format(self, operands: Mapping[str, object]) -> "ImageOperation":
        return replace(self, format=self._format(operands["x"]))

    def check(self, operands: Mapping[str, object]) -> None:
        x = operands["x"]
        if len(x.shape) < 2:
            raise ValueError(f"x is of shape {tuple(x.shape)}: give images, N x C x pixels or N x pixels x C")
        format, channels = self._format(x), self._problem(x, self.layout).C
        shapes = {name: tuple(x.shape) if name in self.image_arrays else (channels,) for name in operands}
        vectors = [name for name in operands if name not in self.image_arrays]
        context = {"context": "for these images", "kind": "images"}
        check_arrays(operands, shapes, format, first="x", float32_names=vectors, **context)
        self._check_order({name: X for name, X in operands.items() if not owner_of(X).is_on_host(X)})

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        x = operands["x"]
        if name in self.image_arrays:
            return Result(like="x", shape=tuple(x.shape), axes=order_of_axes(x))
        return Result(like="x", shape=(self._problem(x, self.layout).C,), type_name="float32")

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        order = self._order(operands)
        problem, fills, arrays = self._problem(operands["x"], order), [], {}
        for name in problem.arrays:
            if name in self.image_arrays:
                arrays[name] = as_images(operands[name], self.layout, order)
            elif name in operands:
                arrays[name] = operands[name]
            else:
                arrays[name] = workspace.array(f"instead of {name}", (problem.C,), np.float32)
                if name in DEFAULTS:
                    fills.append(fill_launch(arrays[name], DEFAULTS[name]))
        return fills + choose_step(tuple(arrays.values()), problem, self._format(operands["x"]), workspace).launches

    def _problem(self, x, order: Layout) -> ImageProblem:
        return self.make_problem(*image_sizes(tuple(x.shape), self.layout), bool(self.relu), order)

    def _format(self, x) -> Format:
        return operand_format("x", x, self.format, FORMATS)

    def _order(self, operands) -> Layout | None:
        """Return the layout in whose order the elements of all images are stored; None if there is none."""
        layouts = [memory_layouts(X, self.layout) for name, X in operands.items() if name in self.image_arrays]
        return next((layout for layout in layouts[0] if all(layout in others for others in layouts)), None)

    def _check_order(self, device_arrays):
        """Raise ValueError if kernels do not accept the layout of an array on the device."""
        for name, X in device_arrays.items():
            if name in self.image_arrays and not memory_layouts(X, self.layout):
                raise ValueError(
                    f"{name} has gaps in memory, or axes in an order that is neither NCHW nor NHWC: copy it, "
                    "by layouts.convert for example"
                )
            if name not in self.image_arrays and X.shape[0] > 1 and strides_of(X) != (dtype_of(X).itemsize,):
                raise ValueError(f"elements of {name} lie apart in memory: copy it to an array without gaps")
        if "x" in device_arrays and self._order(device_arrays) is None:
            names = " and ".join(name for name in device_arrays if name in self.image_arrays)
            raise ValueError(
                f"{names} lie in different orders, some in that of NCHW and some in that of NHWC: make them alike"
            )


def check_bool(name: str, value) -> None:
    """Raise TypeError if an option is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}: say True or False")


def check_number(name: str, value, condition: str = "", least: float = -MAX_FLOAT32) -> None:
    """Raise ValueError if an option is not a number of float32 from `least` on; the message has the condition."""
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= value <= MAX_FLOAT32:
        raise ValueError(f"{name} is {value!r}: give a number{condition}")
