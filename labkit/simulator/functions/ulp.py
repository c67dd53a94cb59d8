"""Published error bounds of CUDA's functions.

From the tables of the CUDA C++ Programming Guide, appendix "Mathematical Functions": the largest difference, in units
in the last place (ulp), between the correctly rounded result and the GPU's.
"""

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import DTypeLike

# libdevice's name without the `f` of float32: (float32, float64), in ulp
ULP = {
    "acos": (2, 2), "acosh": (4, 3), "asin": (2, 2), "asinh": (3, 3), "atan": (2, 2), "atan2": (3, 2), "atanh": (3, 2),
    "cbrt": (1, 1), "cos": (2, 2), "cosh": (2, 1), "cospi": (1, 2), "erf": (2, 2), "erfc": (4, 5), "erfcinv": (4, 6),
    "erfcx": (4, 4), "erfinv": (2, 5), "exp": (2, 1), "exp10": (2, 1), "exp2": (2, 1), "expm1": (1, 1),
    "fast_fdividef": (2, None), "hypot": (3, 2), "j0": (9, 7), "j1": (9, 7), "lgamma": (6, 4), "log": (1, 1),
    "log10": (2, 1), "log1p": (1, 1), "log2": (1, 1), "normcdf": (5, 5), "normcdfinv": (5, 8), "pow": (4, 2),
    "rcbrt": (1, 1), "rsqrt": (2, 1), "sin": (2, 2), "sinh": (3, 2), "sinpi": (1, 2), "tan": (4, 2), "tanh": (2, 1),
    "tgamma": (5, 10), "y0": (9, 7), "y1": (9, 7),
}  # fmt: skip
# Bessel functions of |x| >= 8, and of an order above 1: an absolute error
BESSEL_FROM = 8.0
BESSEL = {"float32": 2.2e-6, "float64": 5e-12}
# lgamma has zeros here, and no bound.
LGAMMA_ZEROS = (-11.0001, -2.2637)
# The fast variants: an absolute error where the argument is in this range, elsewhere an error in ulp (None: no bound).
FAST = {
    "fast_cosf": ((-np.pi, np.pi), 2**-21.19, None),
    "fast_log10f": ((0.5, 2), 2**-24, 3),
    "fast_log2f": ((0.5, 2), 2**-22, 2),
    "fast_logf": ((0.5, 2), 2**-21.41, 3),
    "fast_sinf": ((-np.pi, np.pi), 2**-21.41, None),
}
# Fast variants whose bound grows with |x|, as 2 + floor(slope |x|) ulp.
FAST_EXPONENTIALS = {"fast_expf": 1.173, "fast_exp10f": 2.97}


def allowed_error(
    name: str,
    exact: Float[np.ndarray, "*lanes"],
    dtype: DTypeLike,
    x: Shaped[np.ndarray, "*lanes"],
    order: Shaped[np.ndarray, "*lanes"] | int = 0,
) -> Float[np.ndarray, "*lanes"]:
    """Return the largest error that CUDA's documents allow.

    Parameters
    ----------
    name
        libdevice's name, with the `f` of float32 or without, such as `sin`, `sinf` or `fast_sinf`.
    exact
        The true value, as an array of float64 or wider.
    dtype
        float32 or float64.
    x
        The first argument that is not an order.
    order
        Order of the Bessel functions `jn` and `yn`.

    Returns
    -------
    array
        The allowed distance from `exact`: the bound plus half a unit for the rounding of `exact`; infinity where there
        is no bound.

    Raises
    ------
    KeyError
        For a function without a published bound; those are exact.
    """
    dtype = np.dtype(dtype)
    unit = np.abs(np.spacing(np.abs(exact).astype(dtype))).astype(np.float64)
    if name in FAST:
        (low, high), near, far = FAST[name]
        return np.where((x >= low) & (x <= high), near + unit / 2, np.inf if far is None else (far + 0.5) * unit)
    if name in FAST_EXPONENTIALS:
        return (2.5 + np.floor(np.abs(FAST_EXPONENTIALS[name] * x))) * unit
    base = name if name in ULP else name.removesuffix("f")
    if base in ("jn", "yn"):
        return _error_of_any_order(base, dtype, x, order, unit)
    bound = (ULP[base][dtype == np.float64] + 0.5) * unit
    if base == "lgamma":
        return np.where((x > LGAMMA_ZEROS[0]) & (x < LGAMMA_ZEROS[1]), np.inf, bound)
    if base in ("j0", "j1", "y0", "y1"):
        return np.where(np.abs(x) < BESSEL_FROM, bound, BESSEL[dtype.name])
    return bound


def _error_of_any_order(name, dtype, x, order, unit):
    """Return the bound of `jn` and `yn`: orders 0 and 1 as `j0`; large values of `yn` have one only in float32."""
    absolute, near = BESSEL[dtype.name], (ULP[f"{name[0]}0"][dtype == np.float64] + 0.5) * unit
    of_order = np.full(np.shape(x), absolute)
    if name == "yn" and dtype == np.float32:
        of_order = np.where(np.abs(x) < order, (np.ceil(2 + 2.5 * order) + 0.5) * unit, absolute)
    elif name == "yn":
        of_order = np.where(np.abs(x) > 1.5 * order, absolute, np.inf)
    return np.where(np.asarray(order) < 2, np.where(np.abs(x) < BESSEL_FROM, near, absolute), of_order)
