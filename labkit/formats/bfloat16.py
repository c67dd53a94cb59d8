"""bfloat16: the upper half of a float32."""

from dataclasses import dataclass

import numpy as np

from labkit.formats.kinds.format import Format

BF16_NAN = np.uint16(0x7FC0)
INFINITY = 0x7F80


@dataclass(frozen=True, eq=False, kw_only=True)
class _BFloat16(Format):
    """Bits of bfloat16. Values out of range become infinity."""

    @property
    def largest(self):
        return 2.0**128 - 2.0**120

    def encode(self, values):
        values = np.asarray(values)
        bits = _to_odd(values).view(np.uint32)
        rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)  # half a unit; a tie only to even
        return np.where(np.isnan(values), BF16_NAN, rounded)

    def multiplied_values(self, array):
        return (array.astype(np.uint32) << 16).view(np.float32)

    def is_nan(self, array):
        return array & 0x7FFF > INFINITY


def _to_odd(values):
    """Round values to float32 by rounding to odd: inexact results end in bit 1, so that a second rounding is correct.

    (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008.)
    """
    with np.errstate(over="ignore"):
        nearest = np.array(values, np.float32)
    bits = nearest.view(np.uint32)
    is_inexact_even = (nearest != values) & (bits & 1 == 0) & ~np.isnan(nearest)
    bits[is_inexact_even] += np.where(np.abs(nearest) < np.abs(values), 1, -1)[is_inexact_even].astype(np.uint32)
    return nearest


BF16 = _BFloat16(
    name="bfloat16",
    number=0,  # in kernels, as `ptx.BF16`
    dtype=np.dtype(np.uint16),
    fraction_bits=7,
    ptx_name="bf16",  # in PTX instructions
    arithmetic="bfloat16 tensor",  # on tensor cores, as the peaks in `labkit.machine.gpus` are named
    type_name="bfloat16",  # of torch's tensors
)
