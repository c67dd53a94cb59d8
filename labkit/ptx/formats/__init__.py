"""Number formats of the tensor cores, and conversions to them.

A step keeps its operands' format in a module constant, such as `FORMAT = ptx.BF16`. Arrays hold the formats that
NumPy has no name for as bits: bfloat16 as uint16, e4m3 as uint8. Names and numbers are those of `labkit.formats`. (PTX
ISA, "Alternate Floating-Point Data Formats"; Micikevicius and others, FP8 Formats for Deep Learning, 2022.)
"""

from typing import TYPE_CHECKING

from labkit import formats
from labkit.ptx.formats.on_lanes import Pack, PackBytes, Round, Unpack, in_registers
from labkit.ptx.instruction import instruction

KNOWN = {symbol: format for symbol, format in formats.SYMBOLS.items() if format.ptx_name}
NUMBERS = {symbol: format.number for symbol, format in KNOWN.items()}
NAMES = {number: symbol for symbol, number in NUMBERS.items()}
globals().update(NUMBERS)

__all__ = [*NUMBERS, "pack2", "pack4", "to_tf32", "unpack2"]

ON_LANES = {format.number: in_registers(symbol, format) for symbol, format in KNOWN.items()}
# What conversions take.
HALVES = {format.number: ON_LANES[format.number] for format in (formats.BF16, formats.FP16)}
QUARTERS = {format.number: ON_LANES[format.number] for format in (formats.E4M3,)}

if TYPE_CHECKING:

    def __getattr__(symbol: str) -> int: ...


@instruction(Pack(HALVES), needs=(8, 0))
def pack2(low, high, FORMAT):
    """Two float32, rounded to the nearest BF16 or FP16 (ties to even), as the halves of a uint32."""


@instruction(PackBytes(QUARTERS), needs=(8, 9))
def pack4(a, b, c, d, FORMAT):
    """Four float32, rounded to the nearest E4M3 (ties to even), as the bytes of a uint32, the first in the lowest.

    What is larger than 448 becomes 448, infinity too.
    """


@instruction(Unpack(HALVES))
def unpack2(bits, FORMAT):
    """The two float32 that the halves of a uint32 stand for, the low one first; the reverse of `pack2`."""


@instruction(Round(ON_LANES[formats.TF32.number]), needs=(8, 0))
def to_tf32(value):
    """The bits, a uint32, of a float32 rounded to TF32: 10 bits of fraction, the rest zeros; ties away from zero."""
