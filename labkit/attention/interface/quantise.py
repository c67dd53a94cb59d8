"""Quantisation of Q, K and V to e4m3 with scales, as the kernels of the ladder "fp8" take them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import TYPE_NAMES, common_format, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.arrays.workspace import Workspace
from labkit.attention.fp8 import quantise as kernels
from labkit.attention.fp8.problem import AttentionFP8
from labkit.attention.operands import check_alignment, check_rows
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.formats import BF16, E4M3, FP16, FP32, Format
from labkit.ladder import Launch
from labkit.layout import is_in_c_order

FORMATS = BF16, FP16, FP32
# Outputs by their input.
CODES = {"Q": "q_codes", "K": "k_codes", "V": "v_codes"}
SCALES = {"Q": "q_scale", "K": "k_scale", "V": "v_scale"}


@dataclass(frozen=True)
class Quantise(Operation):
    """See `quantise`."""

    format: str | Format | None = None

    required = "Q", "K", "V"
    outputs = *CODES.values(), *SCALES.values()
    arrays = *required, *outputs

    def with_format(self, operands: Mapping[str, object]) -> "Quantise":
        return replace(self, format=self._format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        for name in self.required:
            if len(shape := operands[name].shape) != 4:
                raise ValueError(f"{name} is {shape_text(shape)}: give it 4 axes, batch, heads, positions and head_dim")
        self._format(operands)
        Q, K, V = (tuple(operands[name].shape) for name in self.required)
        if K != V or (Q[0], Q[3]) != (K[0], K[3]):
            raise ValueError(
                f"Q is {shape_text(Q)}, K is {shape_text(K)} and V is {shape_text(V)}: they do not fit together"
            )
        check_rows(Q[3], E4M3.itemsize)
        self._check_outputs(operands)
        for name in (*self.required, *(name for name in CODES.values() if name in operands)):
            if not owner_of(operands[name]).is_on_host(operands[name]):
                check_alignment(name, operands[name])

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        shape = self._problem(operands).shapes[name[0].upper() if name in CODES.values() else name]
        if name in SCALES.values():
            return Result(like="Q", shape=shape, type_name="float32")
        is_bits = type_name(operands["Q"]) not in TYPE_NAMES.values()  # whose type names no format
        return Result(like="Q", shape=shape, type_name=str(E4M3.dtype) if is_bits else TYPE_NAMES[E4M3])

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        return [
            kernels.launch(operands[X], operands[CODES[X]], operands[SCALES[X]], self.format, transposed=X == "V")
            for X in self.required
        ]

    def _check_outputs(self, operands):
        for name in filter(operands.__contains__, self.outputs):
            X, shape = operands[name], self.result(name, operands).shape
            if tuple(X.shape) != shape:
                raise ValueError(
                    f"{name} is {shape_text(X.shape)}, but {shape_text(shape)} for these arrays: change it"
                )
            wanted = E4M3.dtype if name in CODES.values() else FP32.dtype
            if dtype_of(X) != wanted:
                raise TypeError(f"{name} holds {type_name(X)}, but {wanted} is written: convert it")
            if not owner_of(X).is_on_host(X) and not is_in_c_order(tuple(X.shape), strides_of(X), wanted.itemsize):
                raise ValueError(f"{name} is not in C order: pass an array that is")

    def _problem(self, operands) -> AttentionFP8:
        batch, heads, queries, head_dim = map(int, operands["Q"].shape)
        _, kv_heads, keys, _ = map(int, operands["K"].shape)
        return AttentionFP8(batch, heads, queries, head_dim, keys, kv_heads)

    def _format(self, operands) -> Format:
        for name in "KV":
            format = common_format(operands["Q"], operands[name], self.format, f"Q{name}", FORMATS)
        return format


@call_of(Quantise)
def quantise(
    Q: Shaped[np.ndarray, "B H S D"],
    K: Shaped[np.ndarray, "B G T D"],
    V: Shaped[np.ndarray, "B G T D"],
    *,
    q_codes: Shaped[np.ndarray, "B H S D"] | None = None,
    k_codes: Shaped[np.ndarray, "B G T D"] | None = None,
    v_codes: Shaped[np.ndarray, "..."] | None = None,
    q_scale: Float32[np.ndarray, "..."] | None = None,
    k_scale: Float32[np.ndarray, "..."] | None = None,
    v_scale: Float32[np.ndarray, "..."] | None = None,
    format: str | Format | None = None,
    stream=None,
) -> tuple:
    """Quantise Q, K and V to e4m3, with a scale per 128 positions of a head.

    Parameters
    ----------
    Q, K, V
        Device arrays in C order, or host arrays, which are copied to the device: bfloat16, float16 or float32, with
        the axes batch, heads, positions and head_dim, a multiple of 16.
    q_codes, k_codes, v_codes, q_scale, k_scale, v_scale
        Outputs; None for new arrays.
    format
        Format of an array of bits: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    q_codes, k_codes, v_codes, q_scale, k_scale, v_scale, of Q's kind; see `AttentionFP8`.

    Raises
    ------
    TypeError
        An operand is no array, or has a wrong element type, or not that of the others.
    ValueError
        Shapes do not fit, head_dim is no multiple of 16, or a device array has gaps or is not aligned to 16 bytes.

    Examples
    --------
    >>> *codes, q_scale, k_scale, v_scale = attention.quantise(Q, K, V)
    >>> problem = attention.AttentionFP8(batch, heads, queries, head_dim)
    >>> attention.ladder("fp8").step("block_scaled").launch(*codes, q_scale, k_scale, v_scale, O, lse, problem)
    """
    return run_operation(Quantise, (Q, K, V, q_codes, k_codes, v_codes, q_scale, k_scale, v_scale), (format,), stream)
