"""Powers of two by the special function unit: `ex2`.

One instruction, where `math.exp2` takes several to be right for the least numbers as well. (PTX ISA, "ex2".)
"""

from labkit.ptx.exponentials import on_lanes
from labkit.ptx.instruction import instruction

__all__ = ["exp2"]


@instruction(on_lanes.OfFloat32(on_lanes.exp2))
def exp2(x):
    """2 to the power of a float32, to 22 bits; numbers below 2**-126 are zero, given and found."""
