"""numba's typing rules for scalars, and those that only numba-cuda has: of 16-bit floats."""

import operator
from functools import cache

import numpy as np

from labkit.simulator import seam
from labkit.simulator.seam import bfloat16, types

COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos}
# numba-cuda computes in a 16-bit float where all operands are one, or become one without loss.
NARROW = {types.float16: {types.float16, types.boolean, types.int8}, bfloat16: {bfloat16, types.int8, types.uint8}}


def type_named(name: str):
    """Return the numba type of a name such as `float32`."""
    return bfloat16 if name == "bfloat16" else getattr(types, name)


@cache
def resolve(function, argument_types):
    """Return (result type, argument types after conversion) of a call by numba's rules, or None if it has none."""
    if not argument_types:  # numba stumbles over `complex()` itself
        return None
    for kind, joined in NARROW.items():
        if kind in argument_types and joined.issuperset(argument_types):
            if function in COMPARISONS:
                return types.boolean, (kind,) * len(argument_types)
            if function in ARITHMETIC:
                return kind, (kind,) * len(argument_types)
            if kind == types.float16 and argument_types == (kind,) and function in (abs, float, int):
                return types.int64 if function is int else kind, argument_types
    return seam.rules.resolve(function, argument_types)


@cache
def resolve_overload(cases, argument_types):
    """Return as `resolve`, for a function with these signatures: numba's choice among them."""
    return seam.rules.resolve_overload(cases, argument_types)


@cache
def unify(*scalar_types):
    """Return the type of a variable that is assigned values of these types, or None."""
    if len(set(scalar_types)) == 1:
        return types.unliteral(scalar_types[0])
    if bfloat16 in scalar_types:
        return None
    return seam.rules.unify(*scalar_types)


@cache
def dtype_of(scalar_type) -> np.dtype:
    """Return NumPy's dtype for the lanes' values of a scalar numba type."""
    return np.dtype(np.float32) if scalar_type == bfloat16 else seam.rules.as_dtype(scalar_type)


@cache
def stored_dtype(scalar_type) -> np.dtype:
    """Return NumPy's dtype for the elements of an array of a scalar numba type."""
    return np.dtype(np.uint16) if scalar_type == bfloat16 else seam.rules.as_dtype(scalar_type)


def as_type(value, scalar_type) -> np.generic:
    """Convert a number fixed at compile time to a numba type; it wraps around as in LLVM."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype_of(scalar_type))[()]


@cache
def type_of(dtype: np.dtype):
    """Return numba's type for a NumPy dtype; raise NumbaError if there is none."""
    return seam.rules.from_dtype(dtype)
