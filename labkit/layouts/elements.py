"""Elements as bits: kernels that move them need only their size.

Unsigned integers of 1, 2, 4 or 8 bytes represent elements of any type. A word of 4 bytes holds one
element of 4 bytes or two of 2.
"""

from functools import cache

import numpy as np

from labkit import specialise
from labkit.arrays import views
from labkit.parts.vector_widths import can_load_vectors

UINT_BY_BYTES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@cache
def specialise_itemsize(kernel, itemsize: int):
    """Return the kernel for elements of `itemsize` bytes, which it moves as unsigned integers (`ELEMENT`)."""
    return specialise(kernel, ELEMENT=UINT_BY_BYTES[itemsize])


def as_words(X):
    """View an array in C order as words of 4 bytes; raise ValueError if its rows are not whole 16-byte vectors."""
    if not can_load_vectors(X):
        raise ValueError(
            f"rows of {X.shape[-1]} elements of {X.dtype.itemsize} bytes are not whole pieces of 16 bytes, which this "
            "step moves at once: choose another step, or use layouts.convert"
        )
    return views.as_words(X)
