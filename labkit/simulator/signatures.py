"""Types that `cuda.jit("void(float32[:], int32)")` declares, and the conversion of arguments to them."""

import numpy as np

from labkit.simulator import numba_types, seam
from labkit.simulator.errors import LaunchError
from labkit.simulator.seam import NumbaError, types


def parse_signatures(declared) -> tuple[tuple, ...]:
    """Return the argument types of one signature, or of a list of them, as `cuda.jit` takes it."""
    if declared is None:
        return ()
    several = declared if isinstance(declared, list) else [declared]
    return tuple(seam.rules.parse_signature(signature) for signature in several)


def declared_signatures(kernel) -> tuple[tuple, ...]:
    """Return the argument types that a kernel, ours or numba's, was declared with; none if it takes any."""
    if hasattr(kernel, "_can_compile"):  # numba's, which also lists the signatures that it has compiled for by itself
        return () if kernel._can_compile else tuple(kernel.overloads)
    return getattr(kernel, "signatures", ())


def convert_arguments(names, args, signatures) -> list:
    """Convert the arguments to the first signature that fits; raise LaunchError if none does."""
    problem = None
    for signature in signatures:
        try:
            return _convert_all(names, args, signature)
        except LaunchError as error:
            problem = problem or error
    raise problem


def _convert_all(names, args, signature):
    if len(args) != len(signature):
        raise LaunchError(f"the kernel's signature has {len(signature)} arguments, but {len(args)} were given")
    return [_convert(name, value, kind) for name, value, kind in zip(names, args, signature)]


def _convert(name, value, kind):
    """Convert one argument to its declared type."""
    if isinstance(kind, types.Array):
        array_type = _array_type(value)
        if array_type is not None and array_type.ndim == kind.ndim and _same_bits(array_type.dtype, kind.dtype):
            return value.view(numba_types.dtype_of(kind.dtype))
        if array_type is None or (array_type.dtype, array_type.ndim) != (kind.dtype, kind.ndim):
            raise LaunchError(
                f"the kernel's signature has {kind} for `{name}`, but {array_type or type(value).__name__} was given; "
                "convert it, or leave the signature out of `@cuda.jit`"
            )
        return value
    if isinstance(kind, types.Integer) and isinstance(value, float | np.floating):
        raise LaunchError(f"the kernel's signature has {kind} for `{name}`, and {value!r} is a float; pass `int(...)`")
    if isinstance(kind, (types.Number, types.Boolean)):
        try:
            return numba_types.as_type(value, kind)
        except (TypeError, ValueError, OverflowError):
            raise LaunchError(f"the kernel's signature has {kind} for `{name}`, and {value!r} does not fit") from None
    return value


def _same_bits(first, second):
    """Return whether both are integers of one size, which a GPU does not distinguish."""
    return isinstance(first, types.Integer) and isinstance(second, types.Integer) and first.bitwidth == second.bitwidth


def _array_type(value):
    if not isinstance(value, np.ndarray):
        return None
    try:
        return types.Array(numba_types.type_of(value.dtype), value.ndim, "A")
    except NumbaError:
        return None
