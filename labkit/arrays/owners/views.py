"""labkit's views of GPU memory."""

from labkit import cuda
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.arrays.element_types import numpy_type
from labkit.arrays.owners.base import Owner
from labkit.arrays.views import View


class Views(Owner):
    """Owner of labkit's views of GPU memory. See `Owner`."""

    name = "labkit"

    def owns(self, X) -> bool:
        return isinstance(X, View)

    def signature(self, X):
        return (X.__class__, X.shape, X.strides, X.dtype, X.address % VECTOR_BYTES), X.address

    def empty(self, like, shape, type_name=None):
        return cuda.device_array(shape, like.dtype if type_name is None else numpy_type(type_name))
