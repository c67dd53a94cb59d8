"""Elements as bits: kernels that move them know their size alone, and may take several at once.

Whole numbers of 1, 2, 4 or 8 bytes stand for elements of any type, and words of 4 bytes for one element or for two.
"""

from functools import cache

import numpy as np

from labkit import specialise
from labkit.arrays import views
from labkit.parts.vector_widths import can_load_vectors

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@cache
def for_elements(kernel, itemsize: int):
    """The kernel for elements of so many bytes, as whose bits (`ELEMENT`) it moves them."""
    return specialise(kernel, ELEMENT=BITS[itemsize])


def as_words(X):
    """An array in C order, whose rows are whole pieces of 16 bytes, as one of words.

    Raises
    ------
    ValueError
        Its rows are not whole pieces.
    """
    if not can_load_vectors(X):
        raise ValueError(
            f"rows of {X.shape[-1]} elements of {X.dtype.itemsize} bytes are not whole pieces of 16 bytes, which this "
            "step moves at once: choose another step, or use layouts.convert"
        )
    return views.as_words(X)
