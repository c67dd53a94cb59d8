"""The base class of number formats."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float64, Shaped
from numpy.typing import ArrayLike

BYTE_BITS = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Format(ABC):
    """A number format. Formats with the same name are equal.

    Attributes
    ----------
    name
        Name as in torch: "bfloat16". The format's file has this name.
    dtype
        Element type of NumPy arrays that hold it.
    fraction_bits
        Bits of a multiplied number after the leading 1.
    bits
        Bits of a number in memory; 0 means those of an array's element. A format of 4 bits has two numbers per byte,
        the first in the low half.
    number
        Number that stands for it in kernels, as in `FORMAT = ptx.BF16`; unique. None for a format that no kernel reads.
    ptx_name
        Name in instructions of the tensor cores: "bf16". None for a format that they do not multiply.
    arithmetic
        Arithmetic that multiplies it, by its name in `labkit.machine.gpus`: "float32", "bfloat16 tensor". None if there
        is none.
    type_name
        Element type of torch's tensors (and of NumPy arrays, with ml_dtypes) that holds it: "bfloat16". None if no type
        identifies the format.
    result
        Format in which sums of its products are stored; None means the format itself.
    operand_loss
        Largest relative truncation of a number by tensor cores before they multiply it.
    sum_loss
        Largest relative truncation of a product by tensor cores when they accumulate it.
    underflow
        Largest rounding error of a number that is too small for all fraction bits, where results are often so small.
    block_scales
        Rules that scale blocks of its numbers (`BlockScales`), by their names.
    """

    name: str
    dtype: np.dtype
    fraction_bits: int
    bits: int = 0
    number: int | None = None
    ptx_name: str | None = None
    arithmetic: str | None = None
    type_name: str | None = None
    result: "Format" = field(default=None, repr=False)  # type: ignore[assignment]
    operand_loss: float = 0.0
    sum_loss: float = 0.0
    underflow: float = 0.0
    block_scales: Mapping[str, Any] = field(default_factory=dict, repr=False)

    accumulator_dtype: ClassVar[np.dtype] = np.dtype(np.float32)  # of tensor cores

    def __post_init__(self):
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        object.__setattr__(self, "bits", self.bits or BYTE_BITS * self.dtype.itemsize)
        object.__setattr__(self, "result", self.result or self)

    def __eq__(self, other):
        return isinstance(other, Format) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    @property
    def sort_key(self) -> tuple:
        """Sort key of formats: floating point first, then by falling bits and fraction bits."""
        return self.accumulator_dtype.kind != "f", -self.bits, -self.fraction_bits, self.name

    @property
    def itemsize(self) -> int:
        """Bytes of an array's element, which holds `numbers_per_element` numbers."""
        return self.dtype.itemsize

    @property
    def numbers_per_element(self) -> int:
        return BYTE_BITS * self.itemsize // self.bits

    @property
    def rounding(self) -> float:
        """Largest relative rounding error."""
        return 2.0 ** -(self.fraction_bits + 1)

    @property
    def is_bits(self) -> bool:
        """Whether arrays hold its bits as unsigned integers."""
        return self.dtype.kind == "u"

    @property
    @abstractmethod
    def largest(self) -> float:
        """Largest finite number."""

    @abstractmethod
    def encode(self, values: ArrayLike) -> Shaped[np.ndarray, "..."]:
        """Round values to nearest, ties to even, and return them in an array of the format's dtype."""

    @abstractmethod
    def multiplied_values(self, array: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
        """Return the values that tensor cores multiply for an array of the format's dtype, as float32 or int32."""

    def decode(self, array: Shaped[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Return the values of an array of the format's dtype; the reverse of `encode`."""
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return self.multiplied_values(array).astype(np.float64)

    @abstractmethod
    def is_nan(self, array: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Return which numbers of an array of the format's dtype are NaN."""
