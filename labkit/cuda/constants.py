"""Copies of kernels with other constants."""

from types import FunctionType

from labkit.cuda.simulated import Kernel
from labkit.rebinding import names_of, rebuilt, recomputed


def specialise(kernel, **constants):
    """A copy of a kernel or function with new values for module constants or closure variables.

    numba freezes such a value when it first compiles, so setting the global later changes nothing. Device
    functions that the kernel calls and that use the same names are copied too. What a function's file computes
    from these constants, such as `THREADS = TILE * TILE`, is computed anew, unless it is given as well. All other
    names keep the values they have now.

    Parameters
    ----------
    kernel
        What `cuda.jit` returned, or a plain function.
    **constants
        The new values, by name.

    Raises
    ------
    TypeError
        What was given is no kernel and no function.
    NameError
        Neither the kernel nor a function it calls uses a constant of that name.

    Examples
    --------
    >>> small = specialise(tiled, TILE=8)
    """
    if not isinstance(getattr(kernel, "py_func", kernel), FunctionType):
        raise TypeError(f"specialise takes a kernel or a function, not {kernel!r}")
    used = set()
    copy = _specialised(kernel, constants, used)
    if unknown := sorted(constants.keys() - used):
        function = getattr(kernel, "py_func", kernel)
        known = [n for n, v in names_of(function).items() if isinstance(v, int | float | str | tuple)]
        raise NameError(
            f"{function.__name__} uses no constant named {' or '.join(unknown)}; "
            + (f"it uses {', '.join(sorted(known))}" if known else "it uses none")
        )
    return copy


def _specialised(kernel, constants, used):
    function = getattr(kernel, "py_func", kernel)
    names = names_of(function)
    values, sources = recomputed(function, constants)
    used |= constants.keys() & (names.keys() | sources)
    changes = {name: value for name, value in values.items() if name in names}
    for name, value in names.items():
        if name not in constants and hasattr(value, "py_func") and value is not kernel:
            helper = _specialised(value, constants, used)
            if helper is not value:
                changes[name] = helper
    if not changes:
        return kernel
    copy = rebuilt(function, {**values, **changes})  # all, for a copy of this copy
    if isinstance(kernel, Kernel):
        return Kernel(copy, kernel.device, kernel.options, kernel.signatures)
    if kernel is not function:
        return type(kernel)(copy, targetoptions=getattr(kernel, "options", kernel.targetoptions))
    return copy
