"""Workspace: memory of launches other than their operands, in pieces named by roles.

A step requests memory in `launches(..., workspace)`: `workspace.array("parts", (4, 128), np.float32)`. A role has one
piece, which later launches of the same list reuse. The kind of run decides where pieces come from: host memory (the
simulator), memory that is only counted (`Counted`; each run gives it an address), or stream-ordered memory of the GPU
(`on_stream`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from labkit import cuda
from labkit.arrays.views import Place, View, viewed
from labkit.layout import c_strides
from labkit.simulator import host

ALIGNMENT_BYTES = 256
NOWHERE = 2**40  # an aligned address for any vector


class Workspace:
    """Pieces of memory by their role, allocated at the first request, and reused.

    Parameters
    ----------
    memory
        Allocator with numba's `device_array` and `to_device`. The default allocates host memory for the simulator,
        which reports uninitialised reads of it.
    """

    def __init__(self, memory: Any = host):
        self._memory = memory
        self._pieces: dict[str, list] = {}  # the last one is in use

    def array(self, role: str, shape: tuple[int, ...], dtype):
        """Return an uninitialised array in C order."""
        dtype = np.dtype(dtype)
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape))
        return viewed(self._piece(role, prod(shape) * dtype.itemsize), shape, strides, dtype)

    def counters(self, count: int):
        """Return uint32 zeros with which blocks count arrivals; a kernel resets them to 0."""
        return viewed(self._piece("counters", 4 * count), (count,), (4,), np.uint32)

    def nothing(self, shape: tuple[int, ...], dtype):
        """Return an array for a parameter that a kernel does not access."""
        return self._memory.device_array(shape, dtype)

    @property
    def size_bytes(self) -> int:
        """Bytes of all pieces together."""
        return sum(piece.size for pieces in self._pieces.values() for piece in pieces)

    def _piece(self, role, needed_bytes):
        pieces = self._pieces.setdefault(role, [])
        if not pieces or pieces[-1].size < needed_bytes:
            size = max(1, -(-needed_bytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
            pieces.append(self._allocated(role, size))
        return pieces[-1]

    def _allocated(self, role, size):
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
    from labkit.arrays.driver import handle_of

    with pool.on_stream(handle_of(stream)) as memory:
        yield Workspace(memory)


class Piece(View):
    """Bytes of a counted workspace."""

    @property
    def size(self) -> int:
        return self.shape[0]


class Counted(Workspace):
    """A workspace without memory: views of it hold their offset from the first counter or other piece.

    Parameters
    ----------
    first_place
        Number of the `Place` that represents the counters; the next one represents all other pieces.
    """

    def __init__(self, first_place: int = 0):
        super().__init__(None)
        self.counters_place, self.pieces_place = Place(first_place), Place(first_place + 1)
        self.counters_bytes = self.pieces_bytes = 0

    def nothing(self, shape: tuple[int, ...], dtype):
        dtype = np.dtype(dtype)
        return View(None, shape, tuple(stride * dtype.itemsize for stride in c_strides(shape)), dtype, 0)

    def _allocated(self, role, size):
        if role == "counters":
            place, begin = self.counters_place, self.counters_bytes
            self.counters_bytes += size
        else:
            place, begin = self.pieces_place, self.pieces_bytes
            self.pieces_bytes += size
        return Piece(place, (size,), (1,), np.dtype(np.uint8), NOWHERE + begin)
