"""Arrays in the block's dynamic shared memory, the only kind that may exceed 48 KB.

The launch says how many bytes there are, `kernel[grid, block, stream, shared_bytes]`, up to 227 KB on an H100; the
kernel says which array begins where.
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.shared_memory.on_lanes import SharedArray

__all__ = ["shared_array"]

ALIGNMENT_BYTES = 1024


@instruction(SharedArray(ALIGNMENT_BYTES))
def shared_array(first_byte, shape, dtype):
    """An array in dynamic shared memory, from its byte `first_byte` on; all three are fixed at compile time.

    The memory itself begins at a multiple of 1024 bytes, and an array at a multiple of its elements' size.
    """
