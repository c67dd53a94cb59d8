"""What the calls of attention have in common: arrays of heads that fit one another, and their options."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import can_hold, operand_format, order_of_axes, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.workspace import Workspace
from labkit.attention.interface.arrange import in_rows
from labkit.attention.interface.choice import FORMATS, chosen
from labkit.attention.problem import Attention, Layout, check_options
from labkit.calls.operation import Operation, Result
from labkit.formats import Format
from labkit.ladder import Launch
from labkit.layout import is_in_c_order


@dataclass(frozen=True)
class OfHeads(Operation):
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

    def declared(self, given: Mapping[str, object]) -> "OfHeads":
        return replace(self, format=self._format(given))

    def check(self, given: Mapping[str, object]) -> None:
        for name in ("Q", "K", "V"):
            if len(given[name].shape) != 4:
                raise ValueError(f"{name} is {shape_text(given[name].shape)}: give it four axes, {self.layout}")
        format, asked = self._format(given), self._problem(given)
        for name, X in given.items():
            needed = asked.shapes[name]
            if tuple(X.shape) != needed:
                wanted = shape_text(needed)
                raise ValueError(f"{name} is {shape_text(X.shape)}, but {wanted} beside these Q and K: change it")
            if name != "lse" and not can_hold(X, format):
                raise TypeError(f"Q holds {type_name(given['Q'])} and {name} {type_name(X)}: make them alike")
            if name == "lse" and dtype_of(X) != np.float32:
                raise TypeError(f"lse holds {type_name(X)}, but beside {format} it is float32 too: convert it")
        lse = given.get("lse")
        if lse is None or owner_of(lse).is_on_host(lse):
            return
        if not is_in_c_order(tuple(lse.shape), strides_of(lse), dtype_of(lse).itemsize):
            raise ValueError("lse is not in C order: give an array that is")

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        like = name.removeprefix("d") if name != "O" else "Q"
        return Result(like, tuple(given[like].shape), axes=order_of_axes(given[like]))

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        problem, format, lse = self._problem(given), self._format(given), given.get("lse")
        if lse is None:
            lse = workspace.array("instead of lse", problem.shapes["lse"], np.float32)
        rows = {name: given[name] for name in self.arrays if name != "lse"}
        rows, before, after = in_rows(rows, self.outputs, self.layout, workspace)
        arrays = tuple((rows | {"lse": lse})[name] for name in self.arrays)
        return [*before, *chosen(arrays, problem, format, workspace, self.deterministic).launches, *after]

    @property
    def _options(self):
        return {name: getattr(self, name) for name in ("causal", "window", "scale", "layout")}

    def _problem(self, given) -> Attention:
        """Raises where Q and K make no attention."""
        (of_q, of_k) = (dict(zip(self.layout, given[name].shape)) for name in "QK")
        heads, positions = of_q["H"], of_q["S"]
        return self.problem(of_q["B"], heads, positions, of_q["D"], of_k["S"], of_k["H"], **self._options)

    def _format(self, given) -> Format:
        return operand_format("Q", given["Q"], self.format, FORMATS)
