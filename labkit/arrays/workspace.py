"""Workspace: memory of launches other than their operands, in buffers named by roles.

A step requests memory in `launches(..., workspace)`: `workspace.array("parts", (4, 128), np.float32)`. A later
launch of the step reuses the buffer of a role if it is large enough. The kind of run decides where buffers come from:
host memory (the simulator), memory that is only counted (`CountingWorkspace`; each run gives it an address), or
stream-ordered memory of the GPU (`on_stream`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from labkit import cuda
from labkit.arrays.views import OperandSlot, View, as_strided, byte_strides
from labkit.simulator import host

ALIGNMENT_BYTES = 256
DUMMY_ADDRESS = 2**40  # of memory that is only counted, aligned for any vector; a run replaces it


class Workspace:
    """Buffers by their role, allocated at the first request, and reused.

    Parameters
    ----------
    memory
        Allocator with numba's `device_array` and `to_device`. The default allocates host memory for the simulator,
        which reports uninitialised reads of it.
    """

    def __init__(self, memory: Any = host):
        self._memory = memory
        self._buffers: dict[str, list] = {}  # the last one is in use

    def array(self, role: str, shape: tuple[int, ...], dtype):
        """Return an uninitialised array in C order."""
        return as_strided(self._buffer(role, prod(shape) * np.dtype(dtype).itemsize), shape, dtype=dtype)

    def counters(self, count: int):
        """Return uint32 counters of arrived blocks: 0 before each launch, and after it, as kernels reset them."""
        return self.array("counters", (count,), np.uint32)

    def unused_array(self, shape: tuple[int, ...], dtype):
        """Return an array for a parameter that a kernel does not access."""
        return self._memory.device_array(shape, dtype)

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(buffer.size for buffers in self._buffers.values() for buffer in buffers)

    def _buffer(self, role, needed_bytes):
        buffers = self._buffers.setdefault(role, [])
        if not buffers or buffers[-1].size < needed_bytes:
            size = max(1, -(-needed_bytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
            buffers.append(self._allocate(role, size))
        return buffers[-1]

    def _allocate(self, role, size):
        if role == "counters":
            return self._memory.to_device(np.zeros(size, np.uint8))
        return self._memory.device_array(size, np.uint8)


@contextmanager
def on_stream(stream=0) -> Iterator[Workspace]:
    """Yield a workspace for launches that run on a stream within the context; a GPU releases it after them."""
    if not cuda.on_gpu():
        yield Workspace()
        return
    from labkit.arrays import pool
    from labkit.arrays.driver import stream_handle

    with pool.on_stream(stream_handle(stream)) as memory:
        yield Workspace(memory)


class CountingWorkspace(Workspace):
    """A workspace without memory: addresses in it are offsets, of counters and of other buffers apart.

    Parameters
    ----------
    first_slot
        Number of the `OperandSlot`, a placeholder for memory, of the counters; the next one is that of other buffers.
    """

    def __init__(self, first_slot: int = 0):
        super().__init__(None)
        self._first_slot = first_slot
        self.counters_bytes = self.buffers_bytes = 0

    def unused_array(self, shape: tuple[int, ...], dtype):
        dtype = np.dtype(dtype)
        return View(owner=None, shape=shape, strides=byte_strides(shape, dtype), dtype=dtype, address=0)

    def _allocate(self, role, size):
        if role == "counters":
            slot, begin = self._first_slot, self.counters_bytes
            self.counters_bytes += size
        else:
            slot, begin = self._first_slot + 1, self.buffers_bytes
            self.buffers_bytes += size
        return View(OperandSlot(slot), (size,), (1,), np.dtype(np.uint8), DUMMY_ADDRESS + begin)
