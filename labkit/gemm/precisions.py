"""The precisions of a product: what its operands and its result are stored as, and what multiplies them."""

from typing import NamedTuple

import numpy as np

from labkit import ptx
from labkit.gemm.tensor.operands import DTYPES, RESULTS


class Precision(NamedTuple):
    """`number` is the format's in `labkit.ptx`, which the tensor cores take; None stands for float32 on CUDA cores."""

    name: str
    number: int | None
    operands: np.dtype
    result: np.dtype
    result_number: int

    @property
    def ladder(self) -> str:
        """The ladder of kernels whose steps multiply it."""
        return "fp32" if self.number is None else "tensor"


def _precision(name, number):
    stored = ptx.TF32 if number is None else number
    return Precision(name, number, DTYPES[stored], DTYPES[RESULTS[stored]], RESULTS[stored])


NUMBERS = {
    "float32": None,
    "tf32": ptx.TF32,
    "bfloat16": ptx.BF16,
    "float16": ptx.FP16,
    "float8_e4m3": ptx.E4M3,
}
PRECISIONS = {name: _precision(name, number) for name, number in NUMBERS.items()}


def precision_of(dtype, tf32: bool = False) -> Precision | None:
    """The precision of operands that are stored so; None if there is none."""
    wanted = ("tf32",) if tf32 else ("float32", "bfloat16", "float16", "float8_e4m3")
    return next((PRECISIONS[name] for name in wanted if PRECISIONS[name].operands == dtype), None)
