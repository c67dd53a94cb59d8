"""numba's device arrays."""

from labkit import cuda
from labkit.arrays.owners.base import Owner
from labkit.arrays.views import as_strided


class NumbaArrays(Owner):
    """Owner of numba's device arrays. See `Owner`."""

    name = "numba"

    def owns(self, X) -> bool:
        return hasattr(X, "device_ctypes_pointer")

    def address(self, X) -> int:
        return X.device_ctypes_pointer.value or 0

    def permute_axes(self, X, axes):
        if axes == tuple(range(len(axes))):
            return X
        permuted = as_strided(X, tuple(X.shape[axis] for axis in axes), tuple(X.strides[axis] for axis in axes))
        return cuda.as_cuda_array(permuted)  # numba's transpose accepts only matrices
