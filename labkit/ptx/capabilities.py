"""The least compute capability of each instruction, as its declaration has it (`labkit.ptx.instruction`).

An instruction whose formats differ in that has an entry for each, beside the format's number.
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


def lacks(capability: tuple, needed: tuple) -> bool:
    """Is an instruction that needs one compute capability missing on a GPU of another?"""
    if len(needed) == 3:
        return tuple(capability[:2]) != needed[:2]
    return tuple(capability[:2]) < needed


@lru_cache(1024)  # kernels, which it keeps
def runs(kernel, number: int, capability: tuple) -> bool:
    """Whether a GPU of this capability has all instructions of a kernel, for the format of that number."""
    needs = (CAPABILITIES.get(name, CAPABILITIES.get((name, number))) for name in _called(kernel))
    return not any(lacks(capability, needed) for needed in needs if needed)


@lru_cache(1024)  # kernels, which it keeps
def _called(kernel) -> frozenset[str]:
    """The names of the functions that a kernel calls, and of what the device functions among them call."""
    function = kernel.py_func
    helpers = [value for value in names_used_by(function).values() if hasattr(value, "py_func") and value is not kernel]
    return frozenset(function.__code__.co_names).union(*map(_called, helpers))
