"""The least compute capability of each instruction, as its declaration has it (`labkit.ptx.instruction`).

An instruction whose formats differ in that has an entry for each, beside the format's number.
"""

from labkit import ptx

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
