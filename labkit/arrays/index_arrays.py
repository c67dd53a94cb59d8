"""The integers from 0 on, on the device: kernels read them in place of a missing index array."""

from threading import Lock

import numpy as np

from labkit import cuda
from labkit.arrays.driver import allow_during_capture, current_device

_lock, _cached = Lock(), {}  # by device, all arrays ever made: graphs may hold their addresses


def index_array(count: int):
    """Return an int32 array of 0, 1, 2 and so on, of length `count` or more; each new one is twice as long or more."""
    if not cuda.on_gpu():
        return cuda.to_device(np.arange(count, dtype=np.int32))
    with _lock:
        arrays = _cached.setdefault(current_device(), [])
        if not arrays or arrays[-1].shape[0] < count:
            arrays.append(_make(max(count, 2 * arrays[-1].shape[0] if arrays else 1024)))
        return arrays[-1]


def _make(count):
    with allow_during_capture():
        stream = cuda.stream()
        array = cuda.to_device(np.arange(count, dtype=np.int32), stream=stream)
        stream.synchronize()
    return array
