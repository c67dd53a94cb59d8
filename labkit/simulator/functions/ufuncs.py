"""NumPy's universal functions on single numbers: those that numba-cuda has code for, typed as numba types them.

Functions of float32 that are not exact are computed in float64 and rounded.
"""

import numpy as np
from numba import types

from labkit.simulator.functions.table import Function

EXACT = """bitwise_and bitwise_or bitwise_xor conjugate equal fmax fmin greater greater_equal invert isnan left_shift
    less less_equal logical_and logical_not logical_or logical_xor maximum minimum not_equal right_shift
    true_divide""".split()
ROUNDED = """arccos arccosh arcsin arcsinh arctan arctan2 arctanh cos cosh deg2rad degrees hypot log log10 log2 rad2deg
    radians sin sinh tan tanh""".split()
# other names of the same functions
ALIASES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "divide": "true_divide",
}


def _in_double(function):
    """`function` computed in float64 or complex128."""
    return lambda *values: function(*(v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in values))


_RUN = {
    **{name: getattr(np, name) for name in EXACT},
    **{name: _in_double(getattr(np, name)) for name in ROUNDED},
}
FUNCTIONS = {
    f"np.{name}": Function(
        f"np.{name}",
        _RUN[ALIASES.get(name, name)],
        typed_as=getattr(np, name),
        lacks_code=lambda kinds: types.float16 in kinds,
    )
    for name in (*_RUN, *ALIASES)
}
