"""Vectors of several rows ahead, which each thread copies to its part of shared memory, and reads when it needs them.

A slot of the ring holds the vectors of a row. Copies are asynchronous: a thread waits for its own copies alone, so no
barrier is needed. They have 4 or 8 bytes, which L1 keeps for neighbouring threads. Single 16-bit numbers, which have
no asynchronous copies, are loaded at once.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.depthwise.vectors import to_float32

ELEMENT, WORDS, FORMAT = np.float32, 2, ptx.BF16  # of `vectors`
THREADS = 256  # of a block, at most
PACKED = ELEMENT is np.uint32
IS_ASYNC = ELEMENT is not np.uint16
BYTES = WORDS * 4


@cuda.jit(device=True)
def ring_index(vector, thread):
    """Return the element of the ring where a thread's vector begins; neighbours are those of neighbouring threads."""
    return np.uint32((vector * np.uint32(THREADS) + thread) * np.uint32(WORDS))


@cuda.jit(device=True)
def copy_row(ring, vector, thread, x, i, step, vectors, first, end):
    """Begin the copies of a row's vectors, `step` elements apart from element i on, to the ring from a vector on.

    The first vector has the number `first`, and those in the row have numbers below `end`; the others become zeros.
    Numbers are unsigned: before the row they are large.
    """
    for k in range(vectors):
        target = ring_index(np.uint32(vector + np.uint32(k)), thread)
        source = np.uint32(i + np.uint32(k) * step)
        is_inside = np.uint32(first + np.uint32(k)) < end
        if IS_ASYNC:
            ptx.cp_async(ring, target, x, source, BYTES, np.uint32(BYTES) if is_inside else np.uint32(0))
        else:
            ring[target] = x[source] if is_inside else ELEMENT(0)


@cuda.jit(device=True)
def read_row(ring, vector, thread, vectors, values):
    """Read vectors of the ring as float32."""
    for k in range(vectors):
        source = ring_index(np.uint32(vector + np.uint32(k)), thread)
        if not PACKED:
            if WORDS == 2:
                values[2 * k], values[2 * k + 1] = ptx.load2(ring, source)
            else:
                values[k] = to_float32(ring[source])
        elif WORDS == 2:
            low, high = ptx.load2(ring, source)
            values[4 * k], values[4 * k + 1] = ptx.unpack2(low, FORMAT)
            values[4 * k + 2], values[4 * k + 3] = ptx.unpack2(high, FORMAT)
        else:
            values[2 * k], values[2 * k + 1] = ptx.unpack2(ring[source], FORMAT)
