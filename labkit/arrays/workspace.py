"""Memory of the device that launches need beside their operands.

A plan has a workspace of its own. Calls without a plan share one for each stream, a piece for each role, as large as
any of them has needed: work on a stream is done in order, so that one call is through with a piece before the next
begins. A graph that was captured with a piece holds its address, so such a piece stays even when a larger one takes its
place.
"""

from math import prod

import numpy as np

from labkit import cuda
from labkit.arrays.views import viewed
from labkit.layout import c_strides

ALIGNMENT_BYTES = 256

_of_streams: dict = {}


class Workspace:
    """Pieces of memory by their role, which are allocated when they are first asked for, and used again.

    `launches(...)` of a step takes one where the step needs memory: `workspace.array("parts", (4, 128), np.float32)`.
    """

    def __init__(self, stream=0, memory=cuda):
        self._stream = stream
        self._memory = memory  # what allocates
        self._pieces: dict = {}
        self._in_graphs: list = []

    def array(self, role: str, shape: tuple[int, ...], dtype):
        """An array in C order that holds anything.

        Raises
        ------
        RuntimeError
            More memory is needed while the stream is captured into a graph, where none can be had.
        """
        dtype = np.dtype(dtype)
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape))
        return viewed(self._piece(role, prod(shape) * dtype.itemsize), shape, strides, dtype)

    def counters(self, count: int):
        """So many uint32 of 0, in which blocks count themselves in, and which a kernel leaves at 0.

        Raises
        ------
        RuntimeError
            As `array`.
        """
        return viewed(self._piece("counters", 4 * count, zeros=True), (count,), (4,), np.uint32)

    @property
    def size_bytes(self) -> int:
        """Of all pieces together."""
        return sum(piece.size for piece in self._pieces.values())

    def _piece(self, role, needed_bytes, zeros=False):
        captured = _is_captured(self._stream)
        piece = self._pieces.get(role)
        if piece is None or piece.size < needed_bytes:
            if captured:
                raise RuntimeError(
                    f"this call needs {needed_bytes:,} bytes beside its operands, which cannot be had while a graph is "
                    "captured: make a plan before, or call once on the same stream"
                )
            size = -(-needed_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            of = self._memory
            piece = of.to_device(np.zeros(size, np.uint8)) if zeros else of.device_array(size, np.uint8)
            self._pieces[role] = piece
        if captured and not any(piece is held for held in self._in_graphs):
            self._in_graphs.append(piece)
        return piece


def of_stream(stream=0) -> Workspace:
    """The workspace that calls without a plan share on a stream of the current device."""
    key = cuda.get_current_device().id, _handle(stream)
    if key not in _of_streams:
        _of_streams[key] = Workspace(stream)
    return _of_streams[key]


def _handle(stream) -> int:
    return int(stream) if cuda.on_gpu() else 0


def _is_captured(stream) -> bool:
    """Whether a graph is being captured from the stream; the default stream never is."""
    if not _handle(stream):
        return False
    from numba.cuda.cudadrv.driver import binding, driver

    status = driver.cuStreamIsCapturing(binding.CUstream(int(stream)))
    return status != binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def workspace(role: str, shape: tuple[int, ...], dtype, stream=0):
    """An array of the stream's workspace."""
    return of_stream(stream).array(role, shape, dtype)


def counters(count: int, stream=0):
    """Counters of the stream's workspace."""
    return of_stream(stream).counters(count)
