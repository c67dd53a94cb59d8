"""Powers of two by the special function unit: `ex2`.

One instruction, where `math.exp2` takes several to be accurate for subnormal numbers as well. (PTX ISA, "ex2".)
"""

from labkit.ptx.exponentials import on_lanes
from labkit.ptx.instruction import instruction

__all__ = ["exp2"]


@instruction(on_lanes.FloatFunction(on_lanes.exp2))
def exp2(x):
    """Return 2**x of a float32, to 22 bits; arguments and results below 2**-126 are flushed to zero."""
