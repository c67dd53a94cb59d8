"""Checks of a call's arrays against the shapes and types that its first array implies."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import can_hold, shape_text, strides_of
from labkit.arrays.owners import owner_of
from labkit.formats import Format
from labkit.layout import is_in_c_order


def check_arrays(
    arrays: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    format: Format,
    *,
    first: str,
    context: str,
    float32_names: Collection[str] = (),
    kind: str = "",
) -> None:
    """Raise ValueError or TypeError, with one sentence, if an array has another shape or type than it needs.

    Parameters
    ----------
    arrays
        The arrays by their names.
    shapes
        The required shape of each array.
    format
        The format of all arrays but those of `float32_names`.
    first
        Name of the array that declares the format.
    context
        The words of the message that say to what a shape has to fit: "beside x".
    float32_names
        Names of the arrays that hold float32 in every format.
    kind
        The words for the other arrays in the message about them; by default `first`.
    """
    for name, X in arrays.items():
        if tuple(X.shape) != shapes[name]:
            raise ValueError(f"{name} is {shape_text(X.shape)}, but {shape_text(shapes[name])} {context}: change it")
        if name in float32_names and dtype_of(X) != np.float32:
            words = f"beside {kind or first} of {format}"
            raise TypeError(f"{name} holds {type_name(X)}, but {words} it is float32: convert it")
        if name not in float32_names and not can_hold(X, format):
            raise TypeError(f"{first} holds {type_name(arrays[first])} and {name} {type_name(X)}: make them alike")


def check_c_order(arrays: Mapping[str, Any]) -> None:
    """Raise ValueError if an array on a device is not in C order; arrays on the host are copied in any case."""
    for name, X in arrays.items():
        in_order = is_in_c_order(tuple(X.shape), strides_of(X), dtype_of(X).itemsize)
        if not in_order and not owner_of(X).is_on_host(X):
            raise ValueError(f"{name} is not in C order, and rows are taken as they follow in memory: copy it")
