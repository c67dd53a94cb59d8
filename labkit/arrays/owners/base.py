"""The interface of owners of arrays: our adapters of the packages, such as torch, whose arrays kernels accept."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import nullcontext

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.arrays.element_types import numpy_type


class NeedsPreparation(Exception):
    """An array cannot go to kernels as it is: it is on the host, or its memory does not hold its values."""


class Owner(ABC):
    """A package whose arrays kernels accept. Its methods get arrays of this package."""

    name: str  # of the package, for messages
    allocates_workspace = False  # whether its allocator provides workspace for its arrays
    has_streams = False  # whether it has a current stream

    @abstractmethod
    def owns(self, X) -> bool:
        """Return whether X is an array of the package."""

    def is_on_host(self, X) -> bool:
        """Return whether X is in host memory, or needs a copy there for the simulator."""
        return False

    def check(self, name: str, X, is_written: bool) -> None:  # noqa: B027 - most packages need no check
        """Raise TypeError or ValueError, with one sentence, if kernels must not use X."""

    def resolve(self, X):
        """Return X, or a copy if its memory does not hold its values (negated or conjugated views)."""
        return X

    def as_array(self, X):
        """Return X, or the same memory as an array with shape, strides and type."""
        return X

    def as_numpy(self, X) -> np.ndarray:
        """Return the memory of a host array, as bits if NumPy lacks the type."""
        raise NotImplementedError

    def signature(self, X) -> tuple[Hashable, int]:
        """Return the properties of X on which launches depend, and its address. This must be fast.

        Raise NeedsPreparation if X needs a check, a resolved copy, or a copy on the device first.
        """
        address = self.address(X)
        return (X.__class__, X.shape, X.strides, X.dtype, address % VECTOR_BYTES), address

    def address(self, X) -> int:
        """Return the address of a plain array."""
        return X.address

    def device_of(self, X) -> int | None:
        """Return the number of X's GPU; None if the package does not say it quickly."""
        return None

    def current_stream(self, X) -> int | None:
        """Return the handle of the package's current stream on X's GPU; None if there is none."""
        return None

    def empty(self, like, shape: tuple[int, ...], type_name: str | None = None):
        """Return a new array on the device of `like`, in C order, of its type or the named one, such as "bfloat16"."""
        return cuda.device_array(shape, like.dtype if type_name is None else numpy_type(type_name))

    def permute_axes(self, X, axes: tuple[int, ...]):
        """View the array with its axes in another order."""
        return X.transpose(axes)

    def on_stream(self, like, stream: int):
        """Return a context in which `empty` and `block` allocate memory for work on the stream."""
        return nullcontext()

    def mark_written(self, X) -> None:  # noqa: B027 - most packages do not track it
        """Tell the package that the values of X changed."""

    def block(self, like, size_bytes: int):
        """Return workspace on the current stream: an object with an `address` and `release()`."""
        raise NotImplementedError
