"""Numbers in the formats of tensor cores: rounding to them, and what their bits stand for, in NumPy."""

import numpy as np
from jaxtyping import Float, Shaped

from labkit import ptx

BF16_NAN = np.uint16(0x7FC0)
E4M3_NAN = np.uint8(0x7F)
E4M3_MOST = 448.0


def encode(values: Float[np.ndarray, "..."], number: int) -> Shaped[np.ndarray, "..."]:
    """The values rounded to a format, to the nearest and ties to even, in the array that the kernels take for it.

    Bfloat16 and e4m3 come as bits, uint16 and uint8; float16 and TF32 as float16 and float32 (whose last 13 bits the
    tensor cores leave away). What e4m3 cannot hold becomes its largest number, 448.
    (Micikevicius and others, FP8 Formats for Deep Learning, 2022, section 3.)
    """
    values = np.asarray(values, np.float32)
    if number == ptx.BF16:
        bits = values.view(np.uint32)
        rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(values), BF16_NAN, rounded)
    if number == ptx.E4M3:
        return _e4m3(values)
    with np.errstate(over="ignore"):  # what is too large becomes infinity
        return values.astype(np.float16) if number == ptx.FP16 else values


def decode(array: Shaped[np.ndarray, "..."], number: int) -> Float[np.ndarray, "..."]:
    """What an array in a format stands for, in float64; the reverse of `encode`."""
    if number == ptx.BF16:
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return _E4M3_VALUES[array] if number == ptx.E4M3 else array.astype(np.float64)


def _values_of_e4m3() -> Float[np.ndarray, "256"]:
    bits = np.arange(256)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    size[(exponent == 15) & (fraction == 7)] = np.nan
    return np.where(bits & 128, -size, size)


_E4M3_VALUES = _values_of_e4m3()


def _e4m3(values):
    size = np.minimum(np.abs(values).astype(np.float64), E4M3_MOST)
    positive = _E4M3_VALUES[:127]
    above = np.searchsorted(positive, size).clip(1, 126)
    below = above - 1
    gap_below, gap_above = size - positive[below], positive[above] - size
    nearest = np.where((gap_below < gap_above) | ((gap_below == gap_above) & (below % 2 == 0)), below, above)
    return np.where(np.isnan(values), E4M3_NAN, nearest | np.signbit(values) << 7).astype(np.uint8)
