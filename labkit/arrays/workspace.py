"""Memory of the device that launches need beside their operands.

A plan has a workspace of its own. Calls without a plan share one for each stream, a piece for each role, as large as
any of them has needed: work on a stream is done in order, so that one call is through with a piece before the next
begins. A graph that was captured holds the addresses of its pieces, so that none is ever freed; one that must grow at
least doubles, and all that a role ever had is less than twice what it has.
"""

from contextlib import contextmanager
from math import prod
from threading import Lock

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

    def __init__(self, memory=cuda):
        self.lock = Lock()  # for who launches with pieces of it
        self._memory = memory  # what allocates
        self._pieces: dict[str, list] = {}  # the last one is in use

    def array(self, role: str, shape: tuple[int, ...], dtype):
        """An array in C order that holds anything."""
        dtype = np.dtype(dtype)
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape))
        return viewed(self._piece(role, prod(shape) * dtype.itemsize), shape, strides, dtype)

    def counters(self, count: int):
        """So many uint32 of 0, in which blocks count themselves in, and which a kernel leaves at 0."""
        return viewed(self._piece("counters", 4 * count, zeros=True), (count,), (4,), np.uint32)

    @property
    def size_bytes(self) -> int:
        """Of all pieces together."""
        return sum(piece.size for pieces in self._pieces.values() for piece in pieces)

    def _piece(self, role, needed_bytes, zeros=False):
        pieces = self._pieces.setdefault(role, [])
        size = pieces[-1].size if pieces else 0
        if size < max(1, needed_bytes):
            size = max(-(-needed_bytes // ALIGNMENT_BYTES), 1, 2 * size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            pieces.append(_allocated(self._memory, size, zeros))
        return pieces[-1]


def of_stream(stream=0) -> Workspace:
    """The workspace that calls without a plan share on a stream of the current device."""
    key = current_device(), handle_of(stream)
    return _of_streams.setdefault(key, Workspace())


def current_device() -> int:
    """The number of the device that this thread uses; 0 in the simulator."""
    if not cuda.on_gpu():
        return 0
    from numba.cuda.cudadrv.driver import binding

    status, device = binding.cuCtxGetDevice()
    return int(device) if status == binding.CUresult.CUDA_SUCCESS else cuda.get_current_device().id  # no context yet


def handle_of(stream) -> int:
    """The driver's handle of a stream, numba's or another's that is one by its `__cuda_stream__`.

    Raises
    ------
    TypeError
        It is no stream.
    """
    if stream == 0:
        return 0
    if not hasattr(stream, "__cuda_stream__"):
        raise TypeError(f"{stream!r} is no stream: give one of cuda.stream(), or 0")
    return int(stream.__cuda_stream__()[1])


def _allocated(memory, size, zeros):
    if memory is not cuda or not cuda.on_gpu():
        return memory.to_device(np.zeros(size, np.uint8)) if zeros else memory.device_array(size, np.uint8)
    with even_while_captured():
        piece = cuda.device_array(size, np.uint8)
        if zeros:
            _clear(piece)
    return piece


@contextmanager
def even_while_captured():
    """Lets this thread allocate while a stream is captured: a graph takes no notice of it.

    (CUDA driver API, cuThreadExchangeStreamCaptureMode.)
    """
    from numba.cuda.cudadrv.driver import binding, driver

    before = driver.cuThreadExchangeStreamCaptureMode(binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)


def _clear(piece):
    """Sets all bytes to 0, on a stream that waits for none, since one of those may be captured."""
    from numba.cuda.cudadrv.driver import binding, driver

    stream = driver.cuStreamCreate(binding.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
    driver.cuMemsetD8Async(piece.device_ctypes_pointer.value, 0, piece.size, stream)
    driver.cuStreamSynchronize(stream)
    driver.cuStreamDestroy(stream)
