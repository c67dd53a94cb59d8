"""The precisions of a product: what its operands and its result are stored as, and what multiplies them."""

from typing import NamedTuple

import numpy as np

from labkit import ptx
from labkit.formats import FORMATS

DTYPES = {one.number: one.dtype for one in FORMATS.values()}
RESULTS = {ptx.BF16: ptx.BF16, ptx.FP16: ptx.FP16, ptx.E4M3: ptx.BF16, ptx.TF32: ptx.TF32}


class Precision(NamedTuple):
    """How operands are multiplied: by the steps of which ladder, and their format's number in `labkit.ptx`."""

    name: str
    ladder: str
    format: int

    @property
    def result_format(self) -> int:
        return RESULTS[self.format]

    @property
    def operands(self) -> np.dtype:
        """What arrays of operands hold."""
        return DTYPES[self.format]

    @property
    def result(self) -> np.dtype:
        """What arrays of results hold."""
        return DTYPES[self.result_format]


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision("float32", "fp32", ptx.TF32),  # an array of TF32 is one of float32
        Precision("tf32", "tensor", ptx.TF32),
        Precision("bfloat16", "tensor", ptx.BF16),
        Precision("float16", "tensor", ptx.FP16),
        Precision("float8_e4m3", "tensor", ptx.E4M3),
    )
}


def precision_of(dtype, tf32: bool = False) -> Precision | None:
    """The precision in which operands are multiplied that are stored so; None if there is none."""
    names = ("tf32",) if tf32 else (name for name in PRECISIONS if name != "tf32")
    return next((PRECISIONS[name] for name in names if PRECISIONS[name].operands == dtype), None)
