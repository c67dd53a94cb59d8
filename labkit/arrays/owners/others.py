"""Arrays of any package that says by `__cuda_array_interface__` where they are. (CUDA Array Interface, version 3.)"""

from labkit import cuda
from labkit.arrays.driver import LEGACY
from labkit.arrays.owners.base import PIECE_BYTES, Owner, numpy_type


class Others(Owner):
    """See `Owner`."""

    name = "another package"
    has_streams = True

    def owns(self, X) -> bool:
        return cuda.is_cuda_array(X)

    def signature(self, X):
        described = X.__cuda_array_interface__
        address, shape, strides = described["data"][0], tuple(described["shape"]), described.get("strides")
        return (X.__class__, shape, strides, described["typestr"], address % PIECE_BYTES), address

    def current_stream(self, X) -> int | None:
        """The stream on which it is made, if it names one."""
        stream = X.__cuda_array_interface__.get("stream")
        return 0 if stream == LEGACY else stream

    def check(self, name, X, is_written):
        if is_written and X.__cuda_array_interface__["data"][1]:
            raise ValueError(f"{name} is read-only: pass an array that can be written to")

    def adopted(self, X):
        return cuda.as_cuda_array(X, sync=False)

    def empty(self, like, shape, type_name=None):
        dtype = cuda.as_cuda_array(like, sync=False).dtype if type_name is None else numpy_type(type_name)
        return cuda.device_array(shape, dtype)
