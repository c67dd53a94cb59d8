"""Fences between accesses of threads and of asynchronous hardware.

(PTX ISA, "Memory Consistency Model: Proxies"; compute capability 9.0.)
"""

from labkit.ptx.fences import proxies
from labkit.ptx.instruction import instruction
from labkit.simulator.family import Family
from labkit.simulator.instruction import Plain

__all__ = ["fence_async"]

FENCES = Family(is_asynchronous=True)


@instruction(Plain(proxies.fence), needs=(9, 0), family=FENCES)
def fence_async():
    """Make this thread's writes to shared memory visible to TMA and the tensor cores (`fence.proxy.async`)."""
