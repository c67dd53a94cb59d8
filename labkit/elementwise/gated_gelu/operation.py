"""The call `geglu`, and its operation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.operands import check_same_type, common_format
from labkit.arrays.views import as_matrix
from labkit.arrays.workspace import Workspace
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.elementwise.gated_gelu.problem import GEGLU
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Launch, TooLarge, ladder


@dataclass(frozen=True)
class Geglu(Operation):
    """Operation of the call `geglu`."""

    format: str | Format | None = None

    arrays, required, outputs = ("gate", "up", "y"), ("gate", "up"), ("y",)
    in_place = {"y": "gate"}  # noqa: RUF012 - of the class: y may overwrite gate

    def with_format(self, operands: Mapping[str, object]) -> "Geglu":
        return replace(self, format=self._format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        self._format(operands)
        if not operands["gate"].shape:
            raise ValueError("gate is a number: give an array of rows")
        check_same_type(operands, "gate")

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        return Result(like="gate", shape=tuple(operands["gate"].shape))

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        matrices = [as_matrix(name, X) for name, X in operands.items()]
        problem = GEGLU(prod(matrices[0].shape[:-1]), matrices[0].shape[-1])
        for step in reversed(ladder("elementwise", "gated_gelu")):
            try:
                return step.launches(*matrices, problem, format=self.format)
            except TooLarge:
                continue
        raise ValueError(f"gate has {problem.rows * problem.columns} elements: pass fewer at a time")

    def _format(self, operands) -> Format:
        return common_format(operands["gate"], operands["up"], self.format, ("gate", "up"), (FP32, BF16, FP16))


@call_of(Geglu)
def geglu(
    gate: Shaped[np.ndarray, "*rows columns"],
    up: Shaped[np.ndarray, "*rows columns"],
    *,
    y: Shaped[np.ndarray, "*rows columns"] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*rows columns"]:
    """Compute y = gelu(gate) * up, the activation of a gated feed-forward layer.

    (Shazeer, GLU Variants Improve Transformer, 2020, equation 6, without its GEMMs.)

    Parameters
    ----------
    gate, up
        Arrays of one shape, float32, bfloat16 or float16. The elements of a row are contiguous; rows may have gaps
        between them, so that both arrays may be halves of one array.
    y
        Output array; it may be gate itself. None makes a new array of gate's kind.
    format
        Format of bits: "bfloat16" (uint16). None means the format of the arrays' type.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream. None means the current stream of torch
        or CuPy arrays, else the default stream.

    Returns
    -------
    y. The kernel computes gelu(g) = g (1 + erf(g / sqrt(2))) / 2 in float32.

    Raises
    ------
    TypeError, ValueError
        Shapes or types of the arrays differ, rows are not contiguous, or their distances are unequal.

    Examples
    --------
    >>> y = elementwise.geglu(*X.chunk(2, -1))  # of a tensor that holds both halves
    """
    return run_operation(Geglu, (gate, up, y), (format,), stream)
