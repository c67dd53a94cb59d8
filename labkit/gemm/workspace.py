"""Memory of the device for what a product needs beside its operands, which later products use again.

Each stream has its own, a piece for each role, as large as any product there has needed: work on a stream is done in
order, so that one product is through with it before the next begins. A graph that was captured with a piece holds its
address, so such a piece stays even when a larger one takes its place.
"""

from math import prod

import numpy as np

from labkit import cuda
from labkit.gemm.views import viewed

ALIGNMENT_BYTES = 256

_pieces: dict = {}
_in_graphs: list = []


def workspace(role: str, shape: tuple[int, ...], dtype, stream=0):
    """An array in C order that holds anything; it is the caller's until the next product on this stream.

    Raises
    ------
    RuntimeError
        More memory is needed while the stream is captured into a graph, where none can be had.
    """
    dtype = np.dtype(dtype)
    piece = _piece(role, prod(shape) * dtype.itemsize, stream)
    strides = tuple(prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape)))
    return viewed(piece, shape, strides, dtype)


def counters(count: int, stream=0):
    """So many uint32 of 0, in which blocks count themselves in, and which a kernel leaves at 0.

    Raises
    ------
    RuntimeError
        As `workspace`.
    """
    return viewed(_piece("counters", 4 * count, stream), (count,), (4,), np.uint32)


def _piece(role, needed_bytes, stream):
    captured = _is_captured(stream)
    key = cuda.get_current_device().id, _handle(stream), role
    piece = _pieces.get(key)
    if piece is None or piece.size < needed_bytes:
        if captured:
            raise RuntimeError(
                f"this product needs {needed_bytes:,} bytes beside its operands, which cannot be had while a graph is "
                "captured: multiply once on the same stream before"
            )
        size = -(-needed_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        zeros = role == "counters"
        piece = cuda.to_device(np.zeros(size, np.uint8)) if zeros else cuda.device_array(size, np.uint8)
        _pieces[key] = piece
    if captured and not any(piece is held for held in _in_graphs):
        _in_graphs.append(piece)
    return piece


def _handle(stream) -> int:
    return int(stream) if cuda.on_gpu() else 0


def _is_captured(stream) -> bool:
    """Whether a graph is being captured from the stream; the default stream never is."""
    if not _handle(stream):
        return False
    from numba.cuda.cudadrv.driver import binding, driver

    status = driver.cuStreamIsCapturing(binding.CUstream(int(stream)))
    return status != binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
