"""What `cuda` gives a kernel, a part of it in each of these classes; `language.INTRINSICS` names the methods."""

from labkit.simulator.translator.allocation import Allocations
from labkit.simulator.translator.atomics import Atomics
from labkit.simulator.translator.barriers import Barriers
from labkit.simulator.translator.collectives import Collectives
from labkit.simulator.translator.positions import Positions


class Intrinsics(Positions, Allocations, Barriers, Collectives, Atomics):
    """The functions of `cuda`, except `cuda.jit`."""
