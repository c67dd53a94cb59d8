"""The integers from 0 on, on the device: kernels read them in place of a missing index array."""

from threading import Lock

import numpy as np

from labkit import cuda
from labkit.arrays.driver import current_device, even_while_captured

_lock, _known = Lock(), {}  # by device, all arrays ever made: graphs may hold their addresses


def numbers(count: int):
    """Return an int32 array of 0, 1, 2 and so on, of length `count` or more; each new one is twice as long or more."""
    if not cuda.on_gpu():
        return cuda.to_device(np.arange(count, dtype=np.int32))
    with _lock:
        known = _known.setdefault(current_device(), [])
        if not known or known[-1].shape[0] < count:
            known.append(_made(max(count, 2 * known[-1].shape[0] if known else 1024)))
        return known[-1]


def _made(count):
    with even_while_captured():
        stream = cuda.stream()
        array = cuda.to_device(np.arange(count, dtype=np.int32), stream=stream)
        stream.synchronize()
    return array
