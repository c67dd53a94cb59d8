"""On which stream a call runs: the one it names, else the current one of torch's or CuPy's arrays."""

from collections.abc import Sequence

from labkit import cuda
from labkit.arrays.driver import handle_of
from labkit.arrays.owners import owner_of


def stream_of(operands: Sequence, stream=None) -> int:
    """The driver's handle of the stream for operands.

    Parameters
    ----------
    operands
        Arrays; None among them counts as no array.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of the first operand
        whose package has such.

    Raises
    ------
    TypeError
        It is no stream.
    """
    if stream is not None:
        return handle_of(stream)
    if not cuda.on_gpu():
        return 0
    for X in operands:
        if X is not None and (current := owner_of(X).current_stream(X)) is not None:
            return current
    return 0
