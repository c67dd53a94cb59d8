"""numba's typing rules for scalars, asked of numba itself."""

from functools import cache, lru_cache

import numpy as np
from numba import types
from numba.core import errors as numba_errors
from numba.core.registry import cpu_target
from numba.np import numpy_support


@lru_cache(maxsize=1)
def _typing_context():
    context = cpu_target.typing_context
    context.refresh()
    return context


@cache
def resolve(function, argument_types):
    """(result type, argument types after conversion) of a call by numba's rules, or None if it has none."""
    try:
        signature = _typing_context().resolve_function_type(function, argument_types, {})
    except numba_errors.NumbaError:
        return None
    if signature is None:
        return None
    return types.unliteral(signature.return_type), tuple(types.unliteral(a) for a in signature.args)


@cache
def chosen(signatures, argument_types):
    """The argument types of the signature that numba's overload resolution picks, or None."""
    signature = _typing_context().resolve_overload(None, signatures, argument_types, {})
    return None if signature is None else signature.args


@cache
def unify(*scalar_types):
    """The type that a variable gets which is assigned values of these types, or None."""
    return _typing_context().unify_types(*scalar_types)


@cache
def dtype_of(scalar_type) -> np.dtype:
    """NumPy's dtype for a scalar numba type."""
    return numpy_support.as_dtype(scalar_type)


def as_type(value, scalar_type) -> np.generic:
    """A number fixed when the kernel is compiled, in a numba type; it wraps around as it does in LLVM."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype_of(scalar_type))[()]


@cache
def type_of(dtype: np.dtype):
    """numba's type for a NumPy dtype; raises NumbaNotImplementedError for those it has none for."""
    return numpy_support.from_dtype(dtype)
