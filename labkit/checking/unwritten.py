"""Output arrays filled with values that no computation gives, so that an element that was never stored shows."""

import numpy as np
from jaxtyping import Bool, Shaped
from numpy.typing import DTypeLike

# Signalling NaNs: a copy keeps them as they are, and any arithmetic turns them into another NaN.
_POISON = {
    np.dtype(np.float32): np.uint32(0x7F80ABBA),
    np.dtype(np.float64): np.uint64(0x7FF00000ABBAABBA),
    np.dtype(np.int32): np.uint32(0x8BADF00D),
    np.dtype(np.uint32): np.uint32(0x8BADF00D),
    np.dtype(np.int64): np.uint64(0x8BADF00D8BADF00D),
}


def unwritten_array(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> Shaped[np.ndarray, "..."]:
    """Make an output array that holds poison: a NaN (or an integer) that no computation gives."""
    poison = _POISON[np.dtype(dtype)]
    return np.full(shape, poison, poison.dtype).view(dtype)


def is_unwritten(array: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
    """Mark the elements that still hold the poison of `unwritten_array`."""
    poison = _POISON[array.dtype]
    return np.ascontiguousarray(array).view(poison.dtype) == poison


def is_computed_from_unwritten(value: np.generic) -> bool:
    """Return whether a value is the NaN that arithmetic makes of poison, which keeps all bits but the quiet one."""
    poison = _POISON[value.dtype]
    found, quiet = value.view(poison.dtype), np.array(np.nan, value.dtype).view(poison.dtype)
    return bool(np.isnan(value) and found | quiet == poison | quiet)
