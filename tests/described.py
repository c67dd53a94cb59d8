"""Operands of problems as they would lie, without memory: what launches are made for, however large they are."""

import numpy as np

from labkit.arrays.views import OperandSlot, View
from labkit.arrays.workspace import DUMMY_ADDRESS
from labkit.layout import c_strides


def described(problem, format) -> tuple:
    """Views in the order of a problem's operands; None for an array that it lacks."""
    views, kinds = [], dict.fromkeys(problem.float32_arrays, np.float32) | dict.fromkeys(problem.int32_arrays, np.int32)
    for place, name in enumerate(getattr(problem, "arrays", ()) or problem.ARRAYS):
        shape, dtype = problem.shapes.get(name), np.dtype(kinds.get(name, format.dtype))
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape or ()))
        views.append(
            None if shape is None else View(OperandSlot(place), shape, strides, dtype, DUMMY_ADDRESS * (place + 1))
        )
    return tuple(views)
