"""Memory that launches need beside their operands, in pieces by their role.

A step that needs memory asks for it in `launches(..., workspace)`: `workspace.array("parts", (4, 128), np.float32)`. A
role has one piece, which later launches of the same list use again. Where the pieces come from depends on what runs the
launches: host memory (the simulator), memory that is only counted (`Counted`: each run gives it an address), or memory
of the GPU in the order of a stream (`on_stream`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from labkit import cuda
from labkit.arrays.views import Place, View, viewed
from labkit.layout import c_strides
from labkit.simulator import host

ALIGNMENT_BYTES = 256
NOWHERE = 2**40  # an address at which any vector may begin


class Workspace:
    """Pieces of memory by their role, which are allocated when they are first asked for, and used again.

    Parameters
    ----------
    memory
        What allocates: it has numba's `device_array` and `to_device`. Without one, host memory for the simulator, in
        which a read of what nothing has written shows.
    """

    def __init__(self, memory=host):
        self._memory = memory
        self._pieces: dict[str, list] = {}  # the last one is in use

    def array(self, role: str, shape: tuple[int, ...], dtype):
        """An array in C order that holds anything."""
        dtype = np.dtype(dtype)
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape))
        return viewed(self._piece(role, prod(shape) * dtype.itemsize), shape, strides, dtype)

    def counters(self, count: int):
        """uint32 zeros in which blocks count themselves in, and which a kernel leaves at 0."""
        return viewed(self._piece("counters", 4 * count), (count,), (4,), np.uint32)

    def nothing(self, shape: tuple[int, ...], dtype):
        """An array for a parameter that a kernel does not touch."""
        return self._memory.device_array(shape, dtype)

    @property
    def size_bytes(self) -> int:
        """Of all pieces together."""
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
    """A workspace for launches that run on a stream at once; on a GPU its memory is given back behind them."""
    if not cuda.on_gpu():
        yield Workspace()
        return
    from labkit.arrays import pool
    from labkit.arrays.driver import handle_of

    with pool.on_stream(handle_of(stream)) as memory:
        yield Workspace(memory)


class Piece(View):
    """Bytes of a workspace that is only counted."""

    @property
    def size(self) -> int:
        return self.shape[0]


class Counted(Workspace):
    """A workspace without memory: views of it say how far they are from the begin of all counters or other pieces.

    Parameters
    ----------
    first_place
        The number of the `Place` that stands for its counters; the next one stands for all other pieces.
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
