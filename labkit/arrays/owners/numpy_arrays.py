"""NumPy's arrays, which calls copy to the GPU and back."""

import numpy as np

from labkit.arrays.element_types import dtype_of, numpy_type
from labkit.arrays.owners.base import NeedsPreparation, Owner


class NumPyArrays(Owner):
    """Owner of NumPy's arrays. See `Owner`."""

    name = "NumPy"

    def owns(self, X) -> bool:
        return isinstance(X, np.ndarray)

    def is_on_host(self, X) -> bool:
        return True

    def check(self, name, X, is_written):
        if isinstance(X, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, and no mask is looked at: pass {name}.filled(0)")
        if is_written and not X.flags.writeable:
            raise ValueError(f"{name} is read-only: pass an array that can be written to")

    def signature(self, X):
        raise NeedsPreparation

    def empty(self, like, shape, type_name=None):
        if type_name is None or type_name == str(like.dtype):
            return np.empty(shape, like.dtype)
        return np.empty(shape, numpy_type(type_name))

    def as_numpy(self, X) -> np.ndarray:
        """Return the memory of X as an array of a type that NumPy and numba know."""
        return np.asarray(X).view(dtype_of(X))
