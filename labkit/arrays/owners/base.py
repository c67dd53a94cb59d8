"""What every owner of arrays is asked."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import nullcontext

import numpy as np

PIECE_BYTES = 16


class NotPlain(Exception):
    """An array cannot be handed to kernels as it is: it is of the host, or its memory does not say what it holds."""


class Owner(ABC):
    """A package whose arrays kernels take. Its methods get arrays of its own."""

    name: str  # of the package, for sentences
    gives_memory = False  # whether workspace beside its arrays is its own
    has_streams = False  # whether it has a current stream

    @abstractmethod
    def owns(self, X) -> bool:
        """Whether X is such an array."""

    def is_on_host(self, X) -> bool:
        """Whether X is in memory of the host, or a copy of it is made there for the simulator."""
        return False

    def check(self, name: str, X, is_written: bool) -> None:  # noqa: B027 - most have nothing to say
        """Raises TypeError or ValueError, in a sentence, where kernels must not take X."""

    def resolved(self, X):
        """X, or where its memory holds something else than it says, a copy that does not."""
        return X

    def adopted(self, X):
        """X, or the same memory as an array that has shape, strides and type."""
        return X

    def as_numpy(self, X) -> np.ndarray:
        """The memory of an array of the host, as bits where NumPy lacks the type."""
        raise NotImplementedError

    @abstractmethod
    def signature(self, X) -> tuple[Hashable, int]:
        """All that launches depend on besides what X holds, the same for arrays that the same launches serve; and the
        address. It is found quickly.

        Raises
        ------
        NotPlain
            X has to be checked, resolved or copied first.
        """

    def address(self, X) -> int:
        """Where an array that is plain begins."""
        return self.signature(X)[1]

    def device_of(self, X) -> int | None:
        """The number of X's GPU, if that is known at once."""
        return None

    def current_stream(self, X) -> int | None:
        """The handle of the stream that the package uses now on X's GPU; None if it knows none."""
        return None

    @abstractmethod
    def empty(self, like, shape: tuple[int, ...], type_name: str | None = None):
        """A new array beside `like`, in C order, of its type or another one: "float32", "bfloat16"."""

    def permuted(self, X, axes: tuple[int, ...]):
        """The array with its axes in another order, without a copy."""
        return X.transpose(axes)

    def on_stream(self, like, stream: int):
        """A context in which `empty` and `block` give memory for work on the stream."""
        return nullcontext()

    def mark_written(self, X) -> None:  # noqa: B027 - most do not look
        """Lets the package know that X holds something else from now on."""

    def block(self, like, size_bytes: int):
        """Workspace on the current stream: it has an `address`, `give_back()` and `note_use(stream)`."""
        raise NotImplementedError


def numpy_type(type_name: str) -> np.dtype:
    """NumPy's type of what a type's name says, of bits where NumPy has none."""
    from labkit.arrays.operands import BITS

    return BITS[type_name] if type_name in BITS else np.dtype(type_name)
