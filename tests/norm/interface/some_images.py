"""Images of the device in either order of memory, and their way back."""

import numpy as np

from labkit import cuda
from labkit.arrays.views import as_strided


def turned(X, layout="NCHW"):
    """The same images of the device, whose elements follow one another in the order of the other layout."""
    there, back = ((0, 2, 3, 1), (0, 3, 1, 2)) if layout == "NCHW" else ((0, 3, 1, 2), (0, 2, 3, 1))
    whole = cuda.to_device(np.ascontiguousarray(X.transpose(there)))
    return as_strided(whole, X.shape, tuple(whole.strides[axis] for axis in back))


def on_host(X):
    return X if isinstance(X, np.ndarray) else cuda.as_cuda_array(X).copy_to_host()
