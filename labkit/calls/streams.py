"""Streams of calls: the given one, else the current one of torch's or CuPy's arrays."""

from collections.abc import Sequence

from labkit import cuda
from labkit.arrays.driver import stream_handle
from labkit.arrays.owners import owner_of


def stream_of(operands: Sequence, stream=None) -> int:
    """Return the driver's handle of the stream for operands.

    Parameters
    ----------
    operands
        Arrays, or None for missing ones.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream. None means the current stream of the
        first operand whose package has one.

    Raises
    ------
    TypeError
        `stream` is no stream.
    """
    if stream is not None:
        return stream_handle(stream)
    if not cuda.on_gpu():
        return 0
    for X in operands:
        if X is not None and (current := owner_of(X).current_stream(X)) is not None:
            return current
    return 0
