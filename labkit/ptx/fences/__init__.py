"""Fences between what threads do and what works beside them.

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
    """Shows the copy engine and the tensor cores what this thread wrote to shared memory (`fence.proxy.async`)."""
