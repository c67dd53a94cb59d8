"""Translates a kernel: from its source to a Python function that runs all lanes of a warp set.

The parts are in `translator/`. `source` reads the function, and `folding` computes its constants as Python's compiler
does; one walk over its syntax tree infers types and writes lines (`statements`, `branches`, `expressions`, `names`,
`operators`, `elements`, `calls`, `intrinsics`, on the state that `emitter` and `variables` keep); `function` compiles
them. Whatever the walk does not know raises KernelError.

Types. They are numba's, flow-sensitive as its SSA form makes them: `env` has each variable's type at this point of
the walk, and where paths meet, the types unify. A loop is walked again until the types at its head settle.

Masks. Each region of the function (`homes`: its body, branches, loop bodies) has a variable for its mask, the lanes
that are in it. `if` splits a mask, a loop narrows it, and `break`, `continue` and `return` take lanes out. An
assignment blends new and old lanes only where the mask differs from that of the variable's home, the innermost region
that holds all its uses.

Values. `v_x` holds x in all lanes, and lanes on another path may hold another type. NumPy then keeps the wider of the
two, and each read converts to the type of its own path. What has another form lies apart, in `v1_x` and so on: an array
where others hold a number, a tuple where others hold one of another length.

Waiting. A kernel with a barrier or a spin becomes a generator that yields where its warps wait (`scheduler`), and one
whose orders are explored yields before each access as well (`interleaving`).

Counting. Each load, store and atomic has a site, to which the lanes that make it are added. FLOPs are summed while
the mask stays the same, and added to the launch in one line.
"""

from types import FunctionType

from labkit.simulator.reading.source import read_source
from labkit.simulator.translator.control_flow import may_block
from labkit.simulator.translator.function import FunctionTranslator
from labkit.simulator.translator.program import Program


def translate(function: FunctionType, argument_types: tuple, watch: bool = False, pauses: bool = False) -> Program:
    """Translates a kernel for arguments of these types.

    `watch` adds code that reports every variable after every statement, `pauses` a yield before every access, so
    that warps can take turns there (`interleaving`). Raises KernelError for what the kernel language does not hold.
    """
    program = _program(function, watch, pauses)
    program.kernel, _ = FunctionTranslator(program, function, argument_types, is_kernel=True).run()
    for family, notes in program.families.items():
        if family.check is not None:
            family.check(program, notes)
    return program


def check_device_function(function: FunctionType, argument_types: tuple) -> None:
    """Raises KernelError if a device function holds what the kernel language does not, for arguments of these types."""
    FunctionTranslator(_program(function), function, argument_types, is_kernel=False).run()


def _program(function, watch=False, pauses=False):
    program = Program(read_source(function).filename, watch=watch, pauses=pauses)
    program.blocking = pauses or may_block(function, program.waiting)
    return program
