"""Copies of kernels with other constants."""

from types import FunctionType

from labkit.cuda.simulated import Kernel
from labkit.rebinding import names_used_by, rebuild, recompute


def specialise(kernel, **constants):
    """Copy a kernel or function, with new values for module constants or closure variables.

    numba freezes such a value when it first compiles, so setting the global later changes nothing. Device functions
    that the kernel calls and that use the same names are copied too. Constants that a file derives from these, such as
    `THREADS = TILE * TILE`, are computed again, unless they are given as well. All other names keep their current
    values.

    Parameters
    ----------
    kernel
        A kernel or device function of `cuda.jit`, or a plain function.
    **constants
        The new values, by name.

    Raises
    ------
    TypeError
        `kernel` is neither a kernel nor a function.
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
        used_names = [n for n, v in names_used_by(function).items() if isinstance(v, int | float | str | tuple)]
        raise NameError(
            f"{function.__name__} uses no constant named {' or '.join(unknown)}; "
            + (f"it uses {', '.join(sorted(used_names))}" if used_names else "it uses none")
        )
    return copy


def _specialised(kernel, constants, used):
    function = getattr(kernel, "py_func", kernel)
    names = names_used_by(function)
    values, sources = recompute(function, constants)
    used |= constants.keys() & (names.keys() | sources)
    changes = {name: value for name, value in values.items() if name in names}
    for name, value in names.items():
        if name not in constants and hasattr(value, "py_func") and value is not kernel:
            helper = _specialised(value, constants, used)
            if helper is not value:
                changes[name] = helper
    if not changes:
        return kernel
    copy = rebuild(function, {**values, **changes})  # all values, for copies of this copy
    if isinstance(kernel, Kernel):
        return Kernel(copy, kernel.device, kernel.options, kernel.signatures)
    if kernel is not function:
        return type(kernel)(copy, targetoptions=getattr(kernel, "options", kernel.targetoptions))
    return copy
