"""Launches that overlap: programmatic dependent launch.

Some microseconds pass between two launches of a stream: blocks end, and the next ones begin and initialise barriers.
The blocks of a kernel under `@cuda.jit(early=True)` may begin as soon as the previous launch releases them, or its
blocks end. They prepare meanwhile, and wait before they access global memory. The simulator reports any access before
the wait, even where no earlier launch writes, which it cannot know. (CUDA C++ Programming Guide, "Programmatic
Dependent Launch and Synchronization"; PTX ISA, `griddepcontrol`; compute capability 9.0.)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.launches.on_lanes import LAUNCHES, release
from labkit.simulator.checks import early
from labkit.simulator.instruction import Plain

__all__ = ["launch_release", "launch_wait"]


@instruction(Plain(early.note_wait), needs=(9, 0), family=LAUNCHES)
def launch_wait():
    """Wait until the previous launch has ended; all of its writes are visible then."""


@instruction(Plain(release), needs=(9, 0))
def launch_release():
    """Let the next launch, of an early kernel, begin once all blocks have called this or ended."""
