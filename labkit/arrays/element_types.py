"""Types of array elements by name, and NumPy's types of those that it lacks."""

import numpy as np

from labkit.formats import TYPES

BITS = {name: format.dtype for name, format in TYPES.items() if format.is_bits}  # types that NumPy lacks


def type_name(X) -> str:
    """Return the name of an array's element type: "float32", "bfloat16"."""
    return str(X.dtype).removeprefix("torch.")


def dtype_of(X) -> np.dtype:
    """Return NumPy's type of an array's elements, or of their bits if NumPy has none."""
    name = type_name(X)
    if name in BITS:
        return BITS[name]
    if isinstance(X.dtype, np.dtype):
        return X.dtype
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(f"V{X.element_size()}")  # no kernel accepts it


def have_same_type(X, Y) -> bool:
    """Return whether two arrays hold the same elements; bits may be those of any format of their size."""
    names = {type_name(X), type_name(Y)}
    return dtype_of(X) == dtype_of(Y) and len(names & BITS.keys()) < 2


def numpy_type(type_name: str) -> np.dtype:
    """Return NumPy's type of a name, or of the bits if NumPy has none."""
    return BITS[type_name] if type_name in BITS else np.dtype(type_name)
