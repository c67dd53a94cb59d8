"""Translation of a kernel, from its source to a Python function that runs all lanes of a warp set.

The parts are in `translator/`. `source` reads the function, and `folding` computes its constants as Python's compiler
does. One walk over the syntax tree infers types and writes lines (`statements`, `branches`, `expressions`, `names`,
`operators`, `elements`, `calls`, `intrinsics`; its state is in `emitter` and `variables`). `function` compiles them. A
construct that the walk does not know raises KernelError.

Types. They are numba's, flow-sensitive as its SSA form makes them: `env` has each variable's type at this point of
the walk, and where paths meet, the types unify. A loop is walked again until the types at its head are stable.

Masks. Each region of the function (`homes`: its body, branches, loop bodies) has a variable for its mask, the lanes
that are in it. `if` splits a mask, a loop narrows it, and `break`, `continue` and `return` remove lanes. An assignment
blends new and old lanes only where the mask differs from that of the variable's home, the innermost region that holds
all its uses.

Values. `v_x` holds x in all lanes, and lanes on another path may hold another type. NumPy then keeps the wider of the
two, and each read converts to the type of its own path. Values of another form have variables of their own, `v1_x` and
so on: an array where other lanes hold a number, a tuple where they hold one of another length.

Waiting. A kernel with a barrier or a spin becomes a generator that yields where its warps wait (`scheduler`). One whose
orders are explored also yields before each access (`interleaving`).

Counting. Each load, store and atomic has a site, at which its lanes are counted. FLOPs are summed while the mask stays
the same, and added to the launch in one line.
"""

from types import FunctionType

from labkit.simulator.errors import KernelError
from labkit.simulator.reading.source import argument_names, read_source
from labkit.simulator.seam import types
from labkit.simulator.translator.control_flow import may_block
from labkit.simulator.translator.function import FunctionTranslator
from labkit.simulator.translator.program import Program
from labkit.simulator.values import Array


def translate(function: FunctionType, argument_types: tuple, watch: bool = False, pauses: bool = False) -> Program:
    """Translate a kernel for arguments of these types.

    `watch` adds code that reports every variable after every statement; `pauses` adds a yield before every access,
    where warps can switch (`interleaving`). Raises KernelError for code outside the kernel language.
    """
    program = _program(function, watch, pauses)
    program.kernel, _ = FunctionTranslator(program, function, argument_types, is_kernel=True).run()
    for family, notes in program.families.items():
        if family.check is not None:
            family.check(program, notes)
    return program


def check_device_function(function: FunctionType, argument_types: tuple) -> None:
    """Raise KernelError if a device function is outside the kernel language, for arguments of these types."""
    FunctionTranslator(_program(function), function, argument_types, is_kernel=False).run()


def signature_types(function, signature) -> tuple:
    """Return the translator's types of the arguments that a signature declares."""
    source = read_source(function)
    names = argument_names(source)
    if len(names) != len(signature):
        raise KernelError(
            f"the signature has {len(signature)} arguments, and the function takes {len(names)} ({', '.join(names)}); "
            "make them the same",
            source.tree.lineno,
        )
    return tuple(
        Array(kind.dtype, kind.ndim, "global", name) if isinstance(kind, types.Array) else kind
        for name, kind in zip(names, signature)
    )


def _program(function, watch=False, pauses=False):
    program = Program(read_source(function).filename, watch=watch, pauses=pauses)
    program.blocking = pauses or may_block(function, program.waiting)
    return program
