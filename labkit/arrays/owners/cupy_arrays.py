"""CuPy's arrays as operands of calls: their address, GPU and stream, and new ones."""

import sys

from labkit.arrays.addresses import VECTOR_BYTES
from labkit.arrays.element_types import numpy_type
from labkit.arrays.owners.base import Owner


class CuPyArrays(Owner):
    """Owner of CuPy's arrays. See `Owner`."""

    name = "CuPy"
    has_streams = True

    def owns(self, X) -> bool:
        return type(X).__module__.partition(".")[0] == "cupy" and hasattr(X, "__cuda_array_interface__")

    def address(self, X) -> int:
        return X.data.ptr

    def signature(self, X):
        address = X.data.ptr
        return (X.__class__, X.shape, X.strides, X.dtype, address % VECTOR_BYTES, X.device.id), address

    def device_of(self, X) -> int:
        return X.device.id

    def current_stream(self, X) -> int:
        return sys.modules["cupy"].cuda.get_current_stream(X.device.id).ptr

    def empty(self, like, shape, type_name=None):
        dtype = like.dtype if type_name is None else numpy_type(type_name)
        return sys.modules["cupy"].empty(shape, dtype)

    def on_stream(self, like, stream):
        return sys.modules["cupy"].cuda.ExternalStream(stream, like.device.id)
