"""Arrays of any package with `__cuda_array_interface__`. (CUDA Array Interface, version 3.)"""

from labkit import cuda
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.arrays.driver import LEGACY
from labkit.arrays.owners.base import NeedsPreparation, Owner


class Others(Owner):
    """Owner of arrays with `__cuda_array_interface__`. See `Owner`."""

    name = "another package"
    has_streams = True

    def owns(self, X) -> bool:
        return cuda.is_cuda_array(X)

    def signature(self, X):
        described = getattr(X, "__cuda_array_interface__", None)
        if described is None or described.get("mask") is not None:
            raise NeedsPreparation
        (address, is_read_only), shape, strides = described["data"], tuple(described["shape"]), described.get("strides")
        return (X.__class__, shape, strides, described["typestr"], address % VECTOR_BYTES, is_read_only), address

    def address(self, X) -> int:
        return self.signature(X)[1]

    def current_stream(self, X) -> int | None:
        """Return the handle of the stream that the array names; None if it names none."""
        stream = X.__cuda_array_interface__.get("stream")
        return 0 if stream == LEGACY else stream

    def check(self, name, X, is_written):
        described = getattr(X, "__cuda_array_interface__", None)
        if described is None:
            raise TypeError(f"{name} is not an array of a GPU: pass one that is, or one of NumPy")
        if described.get("mask") is not None:
            raise TypeError(f"{name} is a masked array, and no mask is looked at: pass one without a mask")
        if is_written and X.__cuda_array_interface__["data"][1]:
            raise ValueError(f"{name} is read-only: pass an array that can be written to")

    def as_array(self, X):
        return cuda.as_cuda_array(X, sync=False)

    def empty(self, like, shape, type_name=None):
        return super().empty(self.as_array(like), shape, type_name)
