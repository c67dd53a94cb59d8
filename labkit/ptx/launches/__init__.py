"""Launches that begin before the one before them has ended: programmatic dependent launch.

Between two launches of a stream some microseconds go by, in which blocks end, the next ones begin and set up their
barriers. The blocks of a kernel under `@cuda.jit(early=True)` may begin as soon as the launch before releases them, or
its blocks end; they get ready meanwhile, and wait before they touch global memory: whatever they touch before that is
a finding of the simulator, even where no earlier launch writes, which it cannot know. (CUDA C++ Programming Guide,
"Programmatic Dependent Launch and Synchronization"; PTX ISA, `griddepcontrol`; compute capability 9.0.)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.launches.on_lanes import LAUNCHES, Release, Wait

__all__ = ["launch_release", "launch_wait"]


@instruction(Wait(), needs=(9, 0), family=LAUNCHES)
def launch_wait():
    """Waits until the launch before this one has ended, and sees all that it wrote."""


@instruction(Release(), needs=(9, 0))
def launch_release():
    """Lets the launch that follows begin, once all blocks have said so or ended, if its kernel is an early one."""
