"""Fences between what threads do and what works beside them.

(PTX ISA, "Memory Consistency Model: Proxies"; compute capability 9.0.)
"""

from labkit.ptx.instruction import instruction
from labkit.simulator.checks import proxies
from labkit.simulator.instruction import Plain

__all__ = ["fence_async"]


@instruction(Plain(proxies.fence), needs=(9, 0))
def fence_async():
    """Shows the copy engine and the tensor cores what this thread wrote to shared memory (`fence.proxy.async`)."""
