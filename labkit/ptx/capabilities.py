"""Least compute capability of each instruction, from its declaration (`labkit.ptx.instruction`).

`CAPABILITIES` maps an instruction's name to it, or (name, format number) where formats differ.
"""

from functools import lru_cache

from labkit import ptx
from labkit.rebinding import names_used_by

CAPABILITIES: dict = {}
for _name in ptx.__all__:
    _needs = getattr(getattr(ptx, _name), "needs", None)
    if isinstance(_needs, dict):
        CAPABILITIES |= {(_name, form): needed for form, needed in _needs.items()}
    elif _needs:
        CAPABILITIES[_name] = _needs


def is_missing(capability: tuple, needed: tuple) -> bool:
    """Return whether an instruction that needs one compute capability is missing on a GPU of another."""
    if len(needed) == 3:
        return tuple(capability[:2]) != needed[:2]
    return tuple(capability[:2]) < needed


@lru_cache(1024)  # keeps kernels alive
def can_run(kernel, number: int, capability: tuple) -> bool:
    """Return whether a GPU of this capability has all instructions of a kernel, for the format of a number."""
    needs = (CAPABILITIES.get(name, CAPABILITIES.get((name, number))) for name in _called_names(kernel))
    return not any(is_missing(capability, needed) for needed in needs if needed)


@lru_cache(1024)
def _called_names(kernel) -> frozenset[str]:
    """Return the names of the functions that a kernel and its device functions call."""
    function = kernel.py_func
    helpers = [value for value in names_used_by(function).values() if hasattr(value, "py_func") and value is not kernel]
    return frozenset(function.__code__.co_names).union(*map(_called_names, helpers))
