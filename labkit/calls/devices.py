"""The GPU of a call: that of its arrays."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from labkit import cuda
from labkit.arrays.driver import current_device
from labkit.arrays.owners import owner_of


def device_of(arrays: Mapping[str, object]) -> int | None:
    """Return the number of the GPU that holds arrays, given by their names; None if no array tells it.

    Raises
    ------
    ValueError
        They are on several GPUs.
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
