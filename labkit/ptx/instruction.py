"""Declaration of a function of `labkit.ptx` as an instruction: its effect on lanes, its waits and the GPU it needs.

A folder holds a family of instructions. `__init__.py` has the functions, their documentation and declaration;
`on_lanes.py` their effect on the simulator's lanes and a `Family`, what they require of the run of a kernel that calls
them: to keep track of operations in flight (`is_asynchronous`), of which warp knows of which other's work
(`keeps_clocks`), or of events for timelines (`keeps_events`), and of a state per array (`shared_states`).
`findings.py` has their errors, `on_gpu.py` their GPU code (LLVM IR, PTX). Nothing else names an instruction.

In `on_lanes.py` a class with `translate` checks a call in a kernel's syntax tree (`node`) and emits a call of a
function. That gets the warp set `w`, the warps that run together; the number of the access, `site`; the `array`; the
`mask` of lanes, None for all and False for none; the `index` of each lane; and `call`, the (line, column, name) of the
call. `w.chunk` has the blocks that run at the same time, and `flat` indexes the memory of an array in all of them.
"""

from collections.abc import Callable
from functools import wraps

from labkit.simulator.errors import LaunchError
from labkit.simulator.family import Family
from labkit.simulator.instruction import ATTRIBUTE, Instruction

Capability = tuple[int, int] | tuple[int, int, str]


def instruction(
    on_lanes, waits: bool = False, needs: Capability | dict[int, Capability] | None = None, family: Family | None = None
) -> Callable:
    """Return a decorator that makes a function, of which only the documentation is used, an instruction.

    Parameters
    ----------
    on_lanes
        Effect of a call on lanes, the `meaning` of a `labkit.simulator.instruction.Instruction`.
    waits
        Whether a warp may have to wait there for other warps.
    needs
        Least compute capability, if some GPU of the book lacks the instruction; a dictionary by format number where
        formats differ. A third part, "a", means that only this architecture has it. (PTX ISA, "Target ISA Notes".)
    family
        Requirements on a program that calls it, with their checks; None for no requirements.
    """

    def declare(documented):
        @wraps(documented)
        def call_outside_kernel(*arguments):
            raise LaunchError(
                f"ptx.{documented.__name__} has a meaning only inside a kernel: use it in a function under @cuda.jit"
            )

        setattr(call_outside_kernel, ATTRIBUTE, Instruction(on_lanes, waits, family))
        call_outside_kernel.needs = needs
        return call_outside_kernel

    return declare
