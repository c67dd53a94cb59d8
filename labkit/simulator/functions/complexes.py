"""Complex numbers: `complex(...)` and Python's `cmath`."""

import cmath

import numpy as np

from labkit.simulator.functions.table import Function, from_numpy
from labkit.simulator.seam import types


def make_complex(real, imaginary=None):
    """Make a complex number from its parts."""
    number = real.astype(np.complex128)
    return number if imaginary is None else number + 1j * imaginary


def _of_complex_parts(kinds):
    return len(kinds) == 2 and any(isinstance(kind, types.Complex) for kind in kinds)


def _in_complex128(function):
    return lambda *values: function(*(v.astype(np.complex128) for v in values))


_CMATH = {
    **from_numpy("acos asin asinh atan atanh cos exp isfinite isinf isnan sin sqrt tan"),
    "log": lambda z, base=None: np.log(z) if base is None else np.log(z) / np.log(base),
}
FUNCTIONS = {
    f"cmath.{name}": Function(f"cmath.{name}", _in_complex128(run), typed_as=getattr(cmath, name))
    for name, run in _CMATH.items()
}
FUNCTIONS["complex"] = Function("complex", make_complex, typed_as=complex, lacks_code=_of_complex_parts)
