"""Allowed difference of two right results of a function, by CUDA's published bounds."""

from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator import numba_types
from labkit.simulator.functions.ulp import FAST, FAST_EXPONENTIALS, ULP


@dataclass(frozen=True)
class Tolerance:
    """Allowed difference of two right results: units in the last place of `dtype`, and an absolute distance."""

    ulp: float = 0
    dtype: str = "float64"
    absolute: float = 0

    def near(self, ours, theirs):
        """Return where two right results could have given these values."""
        unit = np.spacing(np.abs(theirs).astype(self.dtype)).astype(np.float64)
        same = (ours == theirs) | np.isnan(ours) & np.isnan(theirs)
        with np.errstate(invalid="ignore"):  # infinities
            return same | (np.abs(ours - theirs) <= self.ulp * unit + self.absolute)


EXACT = Tolerance()
COMPLEX_ULP = 64  # of the absolute value; numba and NumPy order the products of complex functions in their own ways
# Functions that ulp.py has no row for, in ulp: those made of others (CUDA C++ Programming Guide, "Mathematical
# Functions"), and those that multiply by a rounded constant.
OTHERS = {
    **dict.fromkeys("sincos sincospi degrees radians deg2rad rad2deg".split(), 2),
    **dict.fromkeys("rhypot norm3d norm4d rnorm3d rnorm4d".split(), 3),
    **dict.fromkeys("cyl_bessel_i0 cyl_bessel_i1".split(), 6),
    **dict.fromkeys("jn yn".split(), 9),
}
OTHER_NAMES = {"power": "pow", "gamma": "tgamma", "powi": "pow"}
OTHER_NAMES |= {f"arc{f}": f"a{f}" for f in "cos cosh sin sinh tan tan2 tanh".split()}
# 16-bit floats: functions that are rounded once, from the exact value
ROUNDED = "abs neg add sub mul div fma ceil floor rint trunc sqrt max min as sat relu nan float double 2 _to_".split()
HALF_ULP = 2
FAST_ARGUMENT = 3  # the largest that random kernels give to the fast functions
FAST_OTHERS = Tolerance(64, "float32", 2**-19)  # division, powers and tangents made of the fast functions with bounds


def tolerance(name, result) -> Tolerance:
    """Return a function's tolerance: CUDA's bound per side, and a unit for rounding; exact without a bound."""
    last = name.rpartition(".")[2]
    result = result[0] if isinstance(result, types.BaseTuple) else result
    if isinstance(result, types.Complex):
        return Tolerance(COMPLEX_ULP, str(result.underlying_float))
    if not isinstance(result, types.Float) and result != numba_types.bfloat16:
        return EXACT
    if result in (types.float16, numba_types.bfloat16):
        if any(word in last for word in ROUNDED):
            return EXACT
        # a unit of bfloat16 is 2^16 of float32
        return Tolerance(HALF_ULP, "float16") if result == types.float16 else Tolerance(HALF_ULP * 2**16, "float32")
    if last in FAST:
        return Tolerance(8, str(result), 2 * FAST[last][1])
    if last in FAST_EXPONENTIALS:
        return Tolerance(2 * (3 + np.ceil(FAST_ARGUMENT * FAST_EXPONENTIALS[last])), str(result))
    if last.startswith("fast_"):
        return FAST_OTHERS
    for known in (OTHER_NAMES.get(n, n) for n in (last, last.removesuffix("f"))):
        if known in ULP or known in OTHERS:
            return Tolerance(2 * (OTHERS.get(known) or max(ULP[known])) + 1, str(result))
    return EXACT
