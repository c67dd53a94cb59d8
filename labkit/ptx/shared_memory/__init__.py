"""Arrays in the block's dynamic shared memory, the only kind that may exceed 48 KB.

The launch sets its size, `kernel[grid, block, stream, shared_bytes]`, up to 227 KB on an H100; the kernel sets where
each array begins.
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.shared_memory.on_lanes import SharedArray

__all__ = ["shared_array"]

ALIGNMENT_BYTES = 1024


@instruction(SharedArray(ALIGNMENT_BYTES))
def shared_array(first_byte, shape, dtype):
    """Return an array in dynamic shared memory, from byte `first_byte` on; all arguments are compile-time constants.

    The memory is aligned to 1024 bytes; `first_byte` is a multiple of the elements' size.
    """
