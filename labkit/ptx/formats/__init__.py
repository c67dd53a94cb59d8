"""Number formats of the tensor cores, and conversions to them.

A step keeps its operands' format in a module constant, such as `FORMAT = ptx.BF16`. Arrays hold the formats that
NumPy has no name for as bits: bfloat16 as uint16, e4m3 as uint8. (PTX ISA, "Alternate Floating-Point Data Formats";
Micikevicius and others, FP8 Formats for Deep Learning, 2022.)
"""

from labkit.ptx.formats import on_lanes
from labkit.ptx.formats.on_lanes import Pack, PackBytes, Round, Unpack
from labkit.ptx.instruction import instruction

__all__ = ["BF16", "E4M3", "FP16", "INT8", "TF32", "pack2", "pack4", "to_tf32", "unpack2"]

BF16, FP16, TF32, E4M3, INT8 = range(5)
NAMES = ("BF16", "FP16", "TF32", "E4M3", "INT8")
BYTES = {BF16: 2, FP16: 2, TF32: 4, E4M3: 1, INT8: 1}
ON_LANES = {BF16: on_lanes.BF16, FP16: on_lanes.FP16, TF32: on_lanes.TF32, E4M3: on_lanes.E4M3, INT8: on_lanes.INT8}
HALVES = {number: ON_LANES[number] for number in (BF16, FP16)}
QUARTERS = {E4M3: ON_LANES[E4M3]}


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


@instruction(Round(on_lanes.TF32), needs=(8, 0))
def to_tf32(value):
    """The bits, a uint32, of a float32 rounded to TF32: 10 bits of fraction, the rest zeros; ties away from zero."""
