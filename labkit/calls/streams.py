"""GPU and stream of a call: by default its arrays' GPU, and the current stream of torch's or CuPy's arrays.

`owner_of` returns the adapter of an array's package.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from labkit import cuda
from labkit.arrays.driver import current_device, stream_handle
from labkit.arrays.owners import owner_of


def device_of(arrays: Mapping[str, object]) -> int | None:
    """Return the number of the GPU that holds arrays, given by their names; None if no array tells it.

    Raise ValueError if they are on several GPUs.
    """
    devices = {name: device for name, X in arrays.items() if (device := owner_of(X).device_of(X)) is not None}
    (first, device), *others = list(devices.items()) or [("", None)]
    for name, other in others:
        if other != device:
            raise ValueError(f"{first} is on GPU {device} and {name} on GPU {other}: move the one to the other")
    return device


def use_device(device: int | None) -> AbstractContextManager:
    """Return a context in which this thread uses a GPU; None for the current one. This gives the thread a context."""
    return nullcontext() if device in (None, current_device()) else cuda.gpus[device]


def stream_of(operands: Sequence, stream=None) -> int:
    """Return the driver's handle of a stream of numba, torch or CuPy, or 0 for the driver's default stream.

    None means the current stream of the first operand whose package has one. Raise TypeError for what is not a stream.
    """
    if stream is not None:
        return stream_handle(stream)
    if not cuda.on_gpu():
        return 0
    return first_stream(owner_of(X).current_stream(X) for X in operands if X is not None)


def first_stream(currents: Iterable[int | None]) -> int:
    """Return the first current stream that a package has; 0 if there is none."""
    return next((current for current in currents if current is not None), 0)
