"""Addresses of arrays, their alignment to 16-byte vectors, and memory that two arrays share."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from labkit.layout import is_in_c_order
from labkit.simulator.host import DeviceArray, unwrap

VECTOR_BYTES = 16  # size of a vector load, and alignment for TMA
MAX_WORK: Any = 10**6  # limit of NumPy's search for a shared element: below a second


def address_of(X) -> int:
    """Return the address of a device array; 0 for a host array, whose copy begins at an allocation."""
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


def round_up_to_vectors(elements: int, dtype) -> int:
    """Round a number of elements up to whole 16-byte vectors; at least one vector."""
    per_vector = VECTOR_BYTES // dtype.itemsize
    return max(1, -(-elements // per_vector)) * per_vector


def has_aligned_rows(X) -> bool:
    """Return whether rows are contiguous, and each begins at a multiple of 16 bytes."""
    *outer, step = X.strides
    return step == X.dtype.itemsize and not any(n % VECTOR_BYTES for n in (address_of(X), *outer))


def has_vector_rows(X, shape: tuple[int, int], gaps: bool = True) -> bool:
    """Return whether the matrices of X have this shape, and rows of whole, aligned 16-byte vectors.

    If `gaps` is false, there must be no gap between rows.
    """
    if tuple(X.shape[-2:]) != shape or shape[1] != round_up_to_vectors(shape[1], X.dtype):
        return False
    if not has_aligned_rows(X) or min(X.strides) < 0:
        return False
    row_bytes = shape[1] * X.dtype.itemsize
    return X.strides[-2] == row_bytes or (gaps and X.strides[-2] > row_bytes)


def has_c_order(X) -> bool:
    """Return whether elements are in C order without gaps."""
    return is_in_c_order(X.shape, X.strides, X.dtype.itemsize)


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return the begin and end of an array in bytes, relative to its first element; 0, 0 for an empty array."""
    if 0 in shape:
        return 0, 0
    ends = [(length - 1) * stride for length, stride in zip(shape, strides)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + itemsize


def check_own_memory(name: str, X) -> None:
    """Raise ValueError if the strides of an array let two elements have bytes in common."""
    reach = X.dtype.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(X.strides, X.shape)):
        if length > 1 and stride < reach and 0 not in X.shape:
            raise ValueError(f"elements of {name} share their memory: pass an array in which each has its own")
        reach += stride * (length - 1)


def share_memory(X, Y) -> bool:
    """Return whether X and Y share an element; also True if the search would take too long."""
    try:
        return np.shares_memory(_on_host(X), _on_host(Y), max_work=MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def _on_host(X):
    """Return a NumPy array with X's address, for arithmetic only: reading its elements is invalid."""
    if isinstance(X, np.ndarray):
        return X
    if isinstance(X, DeviceArray):
        return unwrap(X)
    described = {"data": (address_of(X), False), "shape": X.shape, "strides": X.strides, "typestr": X.dtype.str}
    return np.asarray(SimpleNamespace(__array_interface__={**described, "version": 3}))
