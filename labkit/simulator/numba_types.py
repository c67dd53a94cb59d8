"""numba's typing rules for scalars, asked of numba itself, and the types that only numba-cuda has."""

import operator
from functools import cache, lru_cache

import numpy as np
from numba import types
from numba.core import errors as numba_errors
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.typeconv import Conversion
from numba.np import numpy_support


class Bfloat16(types.Number):
    """numba-cuda's bfloat16: it widens to float32 and float64 implicitly, and narrows only explicitly.

    Lanes hold its values as float32; arrays hold its 16 bits.
    """

    bitwidth = 16

    def __init__(self):
        super().__init__(name="bfloat16")

    def can_convert_to(self, context, other):
        if isinstance(other, types.Float) and other.bitwidth >= 32:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, types.Float | types.Integer) else None

    def can_convert_from(self, context, other):
        if isinstance(other, types.Integer) and other.bitwidth == 8:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, types.Float | types.Integer) else None

    def unify(self, context, other):
        return None


bfloat16 = Bfloat16()

COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos}
# numba-cuda computes in a 16-bit float where all operands are one, or become one without loss.
NARROW = {types.float16: {types.float16, types.boolean, types.int8}, bfloat16: {bfloat16, types.int8, types.uint8}}


# Errors of numba where it has no type for a call; a wrong number of arguments raises a plain error.
UNTYPED = (numba_errors.NumbaError, NotImplementedError, TypeError, ValueError)


@lru_cache(maxsize=1)
def _typing_context():
    """Return the context that numba's compiler types calls with; hold numba's lock, since compilers change it."""
    context = cpu_target.typing_context
    context.refresh()
    return context


def type_named(name: str):
    """Return the numba type of a name such as `float32`."""
    return bfloat16 if name == "bfloat16" else getattr(types, name)


@cache
@global_compiler_lock
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
    try:
        signature = _typing_context().resolve_function_type(function, argument_types, {})
    except UNTYPED:
        return None
    return _without_literals(signature)


@cache
@global_compiler_lock
def resolve_overload(name, cases, argument_types):
    """Return as `resolve`, for a function with these signatures: numba's choice among them."""
    try:
        signature = _typing_context().resolve_overload(name, cases, argument_types, {})
    except UNTYPED:
        return None
    return _without_literals(signature)


def _without_literals(signature):
    if signature is None:
        return None
    return types.unliteral(signature.return_type), tuple(types.unliteral(a) for a in signature.args)


@cache
@global_compiler_lock
def choose_overload(signatures, argument_types):
    """Return the argument types of the signature that numba's overload resolution picks, or None."""
    signature = _typing_context().resolve_overload(None, signatures, argument_types, {})
    return None if signature is None else signature.args


@cache
@global_compiler_lock
def unify(*scalar_types):
    """Return the type of a variable that is assigned values of these types, or None."""
    if len(set(scalar_types)) == 1:
        return types.unliteral(scalar_types[0])
    if bfloat16 in scalar_types:
        return None
    return _typing_context().unify_types(*scalar_types)


@cache
def dtype_of(scalar_type) -> np.dtype:
    """Return NumPy's dtype for the lanes' values of a scalar numba type."""
    return np.dtype(np.float32) if scalar_type == bfloat16 else numpy_support.as_dtype(scalar_type)


@cache
def stored_dtype(scalar_type) -> np.dtype:
    """Return NumPy's dtype for the elements of an array of a scalar numba type."""
    return np.dtype(np.uint16) if scalar_type == bfloat16 else numpy_support.as_dtype(scalar_type)


def as_type(value, scalar_type) -> np.generic:
    """Convert a number fixed at compile time to a numba type; it wraps around as in LLVM."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype_of(scalar_type))[()]


@cache
def type_of(dtype: np.dtype):
    """Return numba's type for a NumPy dtype; raise NumbaNotImplementedError if there is none."""
    return numpy_support.from_dtype(dtype)
