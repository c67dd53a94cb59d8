"""Number formats of the tensor cores, and conversions to them.

A step has its operands' format in a module constant, such as `FORMAT = ptx.BF16`. Arrays hold formats that NumPy lacks
as bits: bfloat16 as uint16, e4m3 as uint8. Names and numbers are those of `labkit.formats`. (PTX
ISA, "Alternate Floating-Point Data Formats"; Micikevicius and others, FP8 Formats for Deep Learning, 2022.)
"""

from typing import TYPE_CHECKING

from labkit import formats
from labkit.ptx.formats.on_lanes import Pack, Round, Unpack, register_format
from labkit.ptx.instruction import instruction

KNOWN = {symbol: format for symbol, format in formats.SYMBOLS.items() if format.ptx_name}
NUMBERS = {symbol: format.number for symbol, format in KNOWN.items()}
NAMES = {number: symbol for symbol, number in NUMBERS.items()}
globals().update(NUMBERS)

__all__ = [*NUMBERS, "pack2", "pack4", "to_tf32", "unpack2"]

ON_LANES = {format.number: register_format(symbol, format) for symbol, format in KNOWN.items()}
# Formats that conversions support.
HALVES = {format.number: ON_LANES[format.number] for format in (formats.BF16, formats.FP16)}
QUARTERS = {format.number: ON_LANES[format.number] for format in (formats.E4M3,)}

if TYPE_CHECKING:

    def __getattr__(symbol: str) -> int: ...


@instruction(Pack(HALVES, 2), needs=(8, 0))
def pack2(low, high, FORMAT):
    """Round two float32 to the nearest BF16 or FP16 (ties to even), the halves of a uint32."""


@instruction(Pack(QUARTERS, 4), needs=(8, 9))
def pack4(a, b, c, d, FORMAT):
    """Round four float32 to the nearest E4M3 (ties to even), the bytes of a uint32, the first in the lowest.

    Numbers above 448 become 448, also infinity.
    """


@instruction(Unpack(HALVES))
def unpack2(bits, FORMAT):
    """Convert the halves of a uint32 to two float32, the low one first; the inverse of `pack2`."""


@instruction(Round(ON_LANES[formats.TF32.number]), needs=(8, 0))
def to_tf32(value):
    """Round a float32 to TF32 and return its bits, a uint32: 10 bits of fraction, then zeros; ties away from zero."""
