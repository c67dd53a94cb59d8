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
        As torch says it: "bfloat16". The format's file has this name.
    dtype
        Type of the arrays that hold it.
    fraction_bits
        Bits of a number that is multiplied, behind the leading one.
    bits
        Bits of a number in memory; 0 means those of an element of an array. A format of 4 bits has two numbers in a
        byte, the first in the low half.
    number
        What kernels call it, as in `FORMAT = ptx.BF16`; no two formats have the same. None for a format that no kernel
        reads.
    ptx_name
        Its name in instructions of the tensor cores: "bf16". None for a format that they do not multiply.
    arithmetic
        What multiplies it, as `labkit.machine.gpus` calls that: "float32", "bfloat16 tensor". None if nothing here
        does.
    type_name
        Element type of torch's tensors (and of NumPy arrays, by ml_dtypes) that holds it: "bfloat16". None if a type
        does not tell the format.
    result
        Format in which sums of its products are stored; None means the format itself.
    operand_loss
        Share of a number that tensor cores cut off at most before they multiply it.
    sum_loss
        Share of each product's size that tensor cores cut off at most when they add it to a sum.
    block_scales
        Ways to give blocks of its numbers a scale each, by their names: `BlockScales`.
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
    block_scales: Mapping[str, Any] = field(default_factory=dict, repr=False)

    sums: ClassVar[np.dtype] = np.dtype(np.float32)  # type in which tensor cores add up products

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
    def order(self) -> tuple:
        """Place among the formats: floating point first, then by bits and by bits of fraction, the most first."""
        return self.sums.kind != "f", -self.bits, -self.fraction_bits, self.name

    @property
    def itemsize(self) -> int:
        """Bytes of an array's element, which holds `numbers_per_element` numbers."""
        return self.dtype.itemsize

    @property
    def numbers_per_element(self) -> int:
        return BYTE_BITS * self.itemsize // self.bits

    @property
    def rounding(self) -> float:
        """Largest relative change of a number by rounding."""
        return 2.0 ** -(self.fraction_bits + 1)

    @property
    def is_bits(self) -> bool:
        """Whether arrays hold its bits as whole numbers."""
        return self.dtype.kind == "u"

    @property
    @abstractmethod
    def largest(self) -> float:
        """Largest finite number."""

    @abstractmethod
    def encode(self, values: ArrayLike) -> Shaped[np.ndarray, "..."]:
        """Return the values rounded to the nearest, ties to even, in an array of the format's dtype."""

    @abstractmethod
    def multiplied(self, array: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
        """Return what the tensor cores multiply for an array of the format's dtype, as float32 or int32."""

    def decode(self, array: Shaped[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Return what an array of the format's dtype stands for; the reverse of `encode`."""
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return self.multiplied(array).astype(np.float64)

    @abstractmethod
    def is_nan(self, array: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Return which numbers of an array of the format's dtype are NaN."""
