"""Number formats: what arrays hold them, rounding to them, and what their bits stand for, in NumPy.

NumPy has no bfloat16 and no e4m3: arrays of uint16 and uint8 hold their bits, which count as numbers only where a
format is named beside them. TF32 is float32 to a program, and is multiplied by tensor cores with 10 bits of fraction.
(Micikevicius and others, FP8 Formats for Deep Learning, 2022; PTX ISA, "Alternate Floating-Point Data Formats".)

>>> from labkit.formats import BF16
>>> A = BF16.encode(rng.standard_normal((64, 64)))
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Shaped

BF16_NAN = np.uint16(0x7FC0)
E4M3_NAN = np.uint8(0x7F)
E4M3_MOST = 448.0
E4M3_LOSS = 2.0**-18  # of a sum in tensor cores, which cut it off: with each product, of the sum of their sizes


@dataclass(frozen=True)
class Format:
    """A number format.

    Attributes
    ----------
    name
        As torch says it: "bfloat16".
    number
        What kernels call it, as in `FORMAT = ptx.BF16`.
    dtype
        What arrays hold it in.
    arithmetic
        What multiplies it, as `labkit.machine.gpus` calls that: "float32", "bfloat16 tensor".
    fraction_bits
        Of a number that is multiplied, behind the leading one.
    """

    name: str
    number: int
    dtype: np.dtype
    arithmetic: str
    fraction_bits: int

    def __str__(self):
        return self.name

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def rounding(self) -> float:
        """How far rounding moves a number at most, as a share of it."""
        return 2.0 ** -(self.fraction_bits + 1)

    @property
    def result(self) -> "Format":
        """What sums of products of it are stored in."""
        return {"tf32": FP32, "float8_e4m3": BF16}.get(self.name, self)

    @property
    def is_bits(self) -> bool:
        """Whether arrays hold its bits as whole numbers."""
        return self.dtype.kind == "u"

    def is_nan(self, array: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
        """Which numbers of an array of the format's dtype are none."""
        if self.is_bits:
            return array & (0x7FFF if self.itemsize == 2 else 0x7F) >= (0x7F81 if self.itemsize == 2 else 0x7F)
        return np.isnan(array)

    def encode(self, values: Float[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
        """The values rounded to the nearest, ties to even, in an array of the format's dtype.

        TF32 stays float32: the tensor cores leave its last 13 bits away. What e4m3 cannot hold becomes its largest
        number, 448.
        """
        values = np.asarray(values)
        if self.name == "bfloat16":
            bits = _to_odd(values).view(np.uint32)
            rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            return np.where(np.isnan(values), BF16_NAN, rounded)
        if self.name == "float8_e4m3":
            return _e4m3(values)
        with np.errstate(over="ignore"):  # what is too large becomes infinity
            return values.astype(self.dtype)

    def decode(self, array: Shaped[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """What an array of the format's dtype stands for; the reverse of `encode`."""
        if self.name == "bfloat16":
            with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
                return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return _E4M3_VALUES[array] if self.name == "float8_e4m3" else array.astype(np.float64)


BF16 = Format("bfloat16", 0, np.dtype(np.uint16), "bfloat16 tensor", 7)
FP16 = Format("float16", 1, np.dtype(np.float16), "float16 tensor", 10)
TF32 = Format("tf32", 2, np.dtype(np.float32), "tfloat32 tensor", 10)
E4M3 = Format("float8_e4m3", 3, np.dtype(np.uint8), "float8 tensor", 3)
FP32 = Format("float32", 5, np.dtype(np.float32), "float32", 23)

FORMATS = {format.name: format for format in (FP32, TF32, BF16, FP16, E4M3)}


def format_named(name: "str | Format") -> Format:
    """A format by its name, or itself.

    Raises
    ------
    ValueError
        There is no such format; the message lists those there are.
    """
    if isinstance(name, Format):
        return name
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def _values_of_e4m3() -> Float64[np.ndarray, "256"]:
    bits = np.arange(256)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    size[(exponent == 15) & (fraction == 7)] = np.nan
    return np.where(bits & 128, -size, size)


_E4M3_VALUES = _values_of_e4m3()


def _to_odd(values):
    """As float32: what that cannot hold goes to the neighbour whose last bit is 1, so that one more rounding is right.

    (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008.)
    """
    with np.errstate(over="ignore"):
        nearest = np.array(values, np.float32)
    bits = nearest.view(np.uint32)
    moved = (nearest != values) & (bits & 1 == 0) & ~np.isnan(nearest)
    bits[moved] += np.where(np.abs(nearest) < np.abs(values), 1, -1)[moved].astype(np.uint32)
    return nearest


def _e4m3(values):
    size = np.minimum(np.abs(values).astype(np.float64), E4M3_MOST)
    positive = _E4M3_VALUES[:127]
    above = np.searchsorted(positive, size).clip(1, 126)
    below = above - 1
    gap_below, gap_above = size - positive[below], positive[above] - size
    nearest = np.where((gap_below < gap_above) | ((gap_below == gap_above) & (below % 2 == 0)), below, above)
    return np.where(np.isnan(values), E4M3_NAN, nearest | np.signbit(values) << 7).astype(np.uint8)
