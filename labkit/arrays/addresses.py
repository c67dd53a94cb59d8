"""Where arrays lie: how they begin, whether copies of 16 bytes can follow their rows, whether two share an element."""

from types import SimpleNamespace

import numpy as np

from labkit.layout import is_in_c_order
from labkit.simulator.host import DeviceArray, unwrap

PIECE_BYTES = 16  # what vector instructions and the copy engine take at once
MOST_WORK = 10**6  # of NumPy's search for an element that two arrays share: below a second


def address_of(X) -> int:
    """Where an array of the device begins; 0 for one of the host, which is copied to where an allocation begins."""
    if hasattr(X, "address"):  # a `labkit.arrays.views.View`
        return X.address
    if hasattr(X, "device_ctypes_pointer"):  # numba's
        return X.device_ctypes_pointer.value or 0
    if hasattr(X, "data_ptr"):  # torch's
        return X.data_ptr()
    if isinstance(X, DeviceArray):
        return unwrap(X).ctypes.data
    if isinstance(X, np.ndarray):
        return 0
    return X.__cuda_array_interface__["data"][0]


def in_pieces(elements: int, dtype) -> int:
    """So many elements, or as many more as fill whole pieces of 16 bytes; at least one piece."""
    each = PIECE_BYTES // dtype.itemsize
    return max(1, -(-elements // each)) * each


def has_rows_at_pieces(X) -> bool:
    """Whether the elements of a row lie side by side, and each row begins at a multiple of 16 bytes."""
    *apart, step = X.strides
    return step == X.dtype.itemsize and not any(n % PIECE_BYTES for n in (address_of(X), *apart))


def lies_in_pieces(X, shape: tuple[int, int], gaps: bool = True) -> bool:
    """Whether the matrices of X have this shape, rows of whole pieces, and rows and matrices that begin at pieces.

    Where `gaps` is false rows must also follow one another at once.
    """
    if tuple(X.shape[-2:]) != shape or shape[1] != in_pieces(shape[1], X.dtype):
        return False
    if not has_rows_at_pieces(X) or min(X.strides) < 0:
        return False
    row_bytes = shape[1] * X.dtype.itemsize
    return X.strides[-2] == row_bytes or (gaps and X.strides[-2] > row_bytes)


def lies_in_order(X) -> bool:
    """Whether elements follow one another in C order without gaps."""
    return is_in_c_order(X.shape, X.strides, X.dtype.itemsize)


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """From which byte to which one an array reaches, seen from its first element; an empty one nowhere."""
    if 0 in shape:
        return 0, 0
    ends = [(length - 1) * stride for length, stride in zip(shape, strides)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + itemsize


def check_own_memory(name: str, X) -> None:
    """Raises ValueError where two elements of an array have bytes in common, as far as its strides tell."""
    reach = X.dtype.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(X.strides, X.shape)):
        if length > 1 and stride < reach and 0 not in X.shape:
            raise ValueError(f"elements of {name} share their memory: pass an array in which each has its own")
        reach += stride * (length - 1)


def share_memory(X, Y) -> bool:
    """Whether some element of X is also one of Y; yes where that would take long to find out."""
    try:
        return np.shares_memory(_on_host(X), _on_host(Y), max_work=MOST_WORK)
    except np.exceptions.TooHardError:
        return True


def _on_host(X):
    """A NumPy array where X is, to compute with: nobody may read it."""
    if isinstance(X, np.ndarray):
        return X
    if isinstance(X, DeviceArray):
        return unwrap(X)
    described = {"data": (address_of(X), False), "shape": X.shape, "strides": X.strides, "typestr": X.dtype.str}
    return np.asarray(SimpleNamespace(__array_interface__={**described, "version": 3}))
