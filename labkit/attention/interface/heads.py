"""Checks, results and launches that the operations of attention share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import can_hold, operand_format, order_of_axes, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.workspace import Workspace
from labkit.attention.interface.arrange import arrange_rows
from labkit.attention.interface.choice import FORMATS, choose_step
from labkit.attention.problem import Attention, Layout, check_options
from labkit.calls.operation import Operation, Result
from labkit.formats import Format
from labkit.ladder import Launch
from labkit.layout import is_in_c_order


def check_fit(arrays: Mapping[str, Any], problem: Attention, format: Format, other_arrays: str) -> None:
    """Raise an error if an array has another shape or type than in the problem; its sentence names `other_arrays`."""
    for name, X in arrays.items():
        if tuple(X.shape) != problem.shapes[name]:
            wanted = shape_text(problem.shapes[name])
            raise ValueError(f"{name} is {shape_text(X.shape)}, but {wanted} beside {other_arrays}: change it")
        types = dict.fromkeys(problem.float32_arrays, np.float32) | dict.fromkeys(problem.int32_arrays, np.int32)
        if name in types and dtype_of(X) != types[name]:
            raise TypeError(f"{name} holds {type_name(X)}, but it is to hold {np.dtype(types[name])}: convert it")
        if name not in types and not can_hold(X, format):
            raise TypeError(f"Q holds {type_name(arrays['Q'])} and {name} {type_name(X)}: make them alike")


@dataclass(frozen=True)
class HeadsOperation(Operation):
    """An attention without its arrays, forward or backward; for the options see `attend`."""

    causal: bool = False
    window: int | None = None
    scale: float | None = None
    layout: Layout = "BHSD"
    format: str | Format | None = None

    problem: ClassVar[type[Attention]]
    deterministic: ClassVar[bool] = True

    def __post_init__(self):
        check_options(**self._options)

    def with_format(self, operands: Mapping[str, object]) -> "HeadsOperation":
        return replace(self, format=self._format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        for name in ("Q", "K", "V"):
            if len(operands[name].shape) != 4:
                raise ValueError(f"{name} is {shape_text(operands[name].shape)}: give it four axes, {self.layout}")
        check_fit(operands, self._problem(operands), self._format(operands), "these Q and K")
        lse = operands.get("lse")
        if lse is None or owner_of(lse).is_on_host(lse):
            return
        if not is_in_c_order(tuple(lse.shape), strides_of(lse), dtype_of(lse).itemsize):
            raise ValueError("lse is not in C order: give an array that is")

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        like = name.removeprefix("d") if name != "O" else "Q"  # dK is like K
        return Result(like=like, shape=tuple(operands[like].shape), axes=order_of_axes(operands[like]))

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        problem, format, lse = self._problem(operands), self._format(operands), operands.get("lse")
        if lse is None:
            lse = workspace.array("unreturned lse", problem.shapes["lse"], np.float32)
        matrices = {name: operands[name] for name in self.arrays if name != "lse"}
        matrices, copies_in, copies_out = arrange_rows(matrices, self.outputs, self.layout, workspace)
        arrays = tuple((matrices | {"lse": lse})[name] for name in self.arrays)
        return [*copies_in, *choose_step(arrays, problem, format, workspace, self.deterministic).launches, *copies_out]

    @property
    def _options(self):
        return {name: getattr(self, name) for name in ("causal", "window", "scale", "layout")}

    def _problem(self, operands) -> Attention:
        """Return the problem of Q and K; raises if they make none."""
        q, k = (dict(zip(self.layout, operands[name].shape)) for name in "QK")
        return self.problem(q["B"], q["H"], q["S"], q["D"], keys=k["S"], kv_heads=k["H"], **self._options)

    def _format(self, operands) -> Format:
        return operand_format("Q", operands["Q"], self.format, FORMATS)
