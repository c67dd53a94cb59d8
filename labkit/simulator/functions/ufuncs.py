"""NumPy's universal functions on single numbers, as far as numba-cuda has code for them, with numba's types.

Functions of float32 that are not exact are computed in float64 and rounded.
"""

import numpy as np

from labkit.simulator.functions.table import Function, from_numpy
from labkit.simulator.seam import types

EXACT = """bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor conj
    conjugate divide equal fmax fmin greater greater_equal invert isnan left_shift less less_equal logical_and
    logical_not logical_or logical_xor maximum minimum not_equal right_shift true_divide"""
ROUNDED = """acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh cos cosh
    deg2rad degrees hypot log log10 log2 rad2deg radians sin sinh tan tanh"""


def _in_double(function):
    """Return `function` computed in float64 or complex128."""
    return lambda *values: function(*(v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in values))


FUNCTIONS = {
    f"np.{name}": Function(
        f"np.{name}", run, typed_as=getattr(np, name), lacks_code=lambda kinds: types.float16 in kinds
    )
    for name, run in (from_numpy(EXACT) | {n: _in_double(f) for n, f in from_numpy(ROUNDED).items()}).items()
}
