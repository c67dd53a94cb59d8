"""How a function of `labkit.ptx` is declared: what it does to lanes, what it waits for and what GPU it needs.

A folder holds a family of instructions: the functions, their documentation and their declaration in its `__init__.py`,
what they do to lanes, and what they ask of a program (`labkit.simulator.family.Family`), in `on_lanes.py`, what goes
wrong with them in `findings.py`, their machine code in `on_gpu.py`. Nothing else names an instruction.
"""

from collections.abc import Callable
from functools import wraps

from labkit.simulator.errors import LaunchError
from labkit.simulator.family import Family
from labkit.simulator.instruction import ATTRIBUTE, Instruction

Capability = tuple[int, int] | tuple[int, int, str]


def instruction(
    on_lanes,
    waits: bool = False,
    needs: Capability | dict[int, Capability] | None = None,
    family: Family | None = None,
) -> Callable:
    """Makes a function, of which the documentation counts alone, an instruction of the kernel language.

    Parameters
    ----------
    on_lanes
        What a call does to lanes, as `labkit.simulator.instruction.Instruction` has it.
    waits
        Whether a warp may have to wait there for others.
    needs
        The least compute capability, where any GPU of the book lacks the instruction; one for each number of a format
        where that makes the difference. A third part, "a", stands for what one architecture alone has. (PTX ISA,
        "Target ISA Notes" of each instruction.)
    family
        What a program that calls it must have, and the checks that come with it; None where it asks for nothing.
    """

    def declared(documented):
        @wraps(documented)
        def outside(*arguments):
            raise LaunchError(
                f"ptx.{documented.__name__} has a meaning only inside a kernel: use it in a function under @cuda.jit"
            )

        setattr(outside, ATTRIBUTE, Instruction(on_lanes, waits, family))
        outside.needs = needs
        return outside

    return declared
