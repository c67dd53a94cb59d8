"""Vectors of several rows ahead, which each thread copies to its part of shared memory, and reads when it needs them.

A vector is one or two words of two 16-bit channels. Copies are asynchronous: a thread waits for its own copies alone,
so no barrier is needed. They have 4 or 8 bytes, which L1 keeps for neighbouring threads; 16 would bypass it.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.depthwise.tiling import THREADS

WORDS, FORMAT = 2, ptx.BF16  # of a vector; of its numbers
BYTES = WORDS * 4


@cuda.jit(device=True)
def ring_index(vector, thread):
    """Return the word of the ring where a thread's vector begins; neighbours are those of neighbouring threads."""
    return np.uint32((vector * np.uint32(THREADS) + thread) * np.uint32(WORDS))


@cuda.jit(device=True)
def copy_row(ring, vector, thread, x, i, step, vectors, first, end):
    """Begin the copies of a row's vectors, `step` words apart from word i on, to the ring from a vector on.

    The first vector has the number `first`, and those in the row have numbers below `end`; the others become zeros.
    Numbers are unsigned: before the row they are large.
    """
    for k in range(vectors):
        target = ring_index(np.uint32(vector + np.uint32(k)), thread)
        source = np.uint32(i + np.uint32(k) * step)
        valid_bytes = np.uint32(BYTES) if np.uint32(first + np.uint32(k)) < end else np.uint32(0)
        ptx.cp_async(ring, target, x, source, BYTES, valid_bytes)


@cuda.jit(device=True)
def read_row(ring, vector, thread, vectors, values):
    """Read vectors of the ring as float32."""
    for k in range(vectors):
        source = ring_index(np.uint32(vector + np.uint32(k)), thread)
        if WORDS == 2:
            low, high = ptx.load2(ring, source)
            values[4 * k], values[4 * k + 1] = ptx.unpack2(low, FORMAT)
            values[4 * k + 2], values[4 * k + 3] = ptx.unpack2(high, FORMAT)
        else:
            values[2 * k], values[2 * k + 1] = ptx.unpack2(ring[source], FORMAT)
