"""The GPU of a call: that of its arrays."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from labkit import cuda
from labkit.arrays.driver import current_device
from labkit.arrays.owners import owner_of


def device_of(arrays: Mapping[str, object]) -> int | None:
    """Return the number of the GPU of arrays by their names; None if no array says it.

    Raises
    ------
    ValueError
        They are on several GPUs.
    """
    known = {name: owner_of(X).device_of(X) for name, X in arrays.items()}
    known = {name: device for name, device in known.items() if device is not None}
    (first, one), *others = list(known.items()) or [("", None)]
    for name, other in others:
        if other != one:
            raise ValueError(f"{first} is on GPU {one} and {name} on GPU {other}: move the one to the other")
    return one


def using(device: int | None) -> AbstractContextManager:
    """Return a context in which this thread uses a GPU; None for the current one."""
    return nullcontext() if device in (None, current_device()) else cuda.gpus[device]
