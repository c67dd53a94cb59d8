"""Types of array elements by name, and NumPy's types of those that it lacks."""

import numpy as np

from labkit.formats import BF16, E4M3

BITS = {"bfloat16": BF16.dtype, "float8_e4m3fn": E4M3.dtype}  # types of the bits, for types that NumPy lacks


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


def numpy_type(type_name: str) -> np.dtype:
    """Return NumPy's type of a name, or of the bits if NumPy has none."""
    return BITS[type_name] if type_name in BITS else np.dtype(type_name)
