"""How a function of `labkit.ptx` becomes an intrinsic of numba-cuda, and what all of them share."""

from functools import wraps
from importlib import import_module
from inspect import signature
from types import ModuleType

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.extending import infer
from numba.cuda.typing.templates import infer_global, make_intrinsic_template

from labkit.ptx.capabilities import lacks
from labkit.ptx.formats import NAMES
from labkit.simulator.errors import LaunchError
from labkit.simulator.instruction import instruction_of

VOID, I16, I32, I64 = ir.VoidType(), ir.IntType(16), ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
SHARED = 3  # LLVM's number of the address space
REGISTERS = {I16: "h", I32: "r", I64: "l", F32: "f", F64: "d"}  # constraints of operands in inline assembly


def intrinsic(function):
    """Makes what is defined below it the machine code of a function of `labkit.ptx`.

    The definition takes numba's typing context and the types of the arguments, and gives the signature and the
    function that writes the code, as those of `numba.cuda.extending.intrinsic` do.
    """

    parameters = list(signature(function).parameters)

    def register(definition):
        @wraps(definition)
        def checked(typing, *kinds):
            made, code = definition(typing, *kinds)
            form = kinds[parameters.index("FORMAT")].literal_value if "FORMAT" in parameters else None

            def on_this_gpu(*arguments):
                check_capability(function, form)
                return code(*arguments)

            return made, on_this_gpu

        options = {"prefer_literal": True, "kwargs": {"target": "cuda"}}
        template = make_intrinsic_template(function, checked, function.__name__, **options)
        infer(template)
        infer_global(function, types.Function(template))
        return definition

    return register


def load(value):
    """Loads the machine code of an instruction, or of all that a module gives a kernel: `on_gpu` in their folders."""
    for function in [*vars(value).values()] if isinstance(value, ModuleType) else [value]:
        if instruction_of(function):
            import_module(f"{function.__module__}.on_gpu")


def check_capability(function, form: int | None):
    """Refuses an instruction, of this format if it has one, for a GPU that is too old for it."""
    capability = ConfigStack.top_or_none().compute_capability  # of the kernel that is being compiled
    by_format = isinstance(function.needs, dict)
    needed = function.needs[form] if by_format else function.needs
    if needed and lacks(capability, needed):
        of_format = f" of {NAMES[form]}" if by_format else ""
        raise LaunchError(
            f"`ptx.{function.__name__}`{of_format} needs a GPU of compute capability {_written(needed)}, and this one "
            f"has {_written(capability)}; `labkit.simulate` runs the kernel anyway"
        )


def _written(capability):
    only = " and no other" if len(capability) == 3 and capability[2] == "a" else ""
    return f"{capability[0]}.{capability[1]}{only}"


def literal(kind, what: str) -> int:
    """The number that an argument is at compile time.

    Raises
    ------
    TypingError
        It is known only when the kernel runs.
    """
    if not isinstance(kind, types.IntegerLiteral):
        raise TypingError(f"{what} is fixed when a kernel is compiled: make it a constant of the module")
    return kind.literal_value


def index_kinds(array, index) -> tuple:
    """The types of the indices, one for each axis of the array."""
    kinds = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if not isinstance(array, types.Array) or array.layout != "C":
        raise TypingError("this instruction needs an array in C order: pass a copy")
    if len(kinds) != array.ndim or not all(isinstance(kind, types.Integer) for kind in kinds):
        raise TypingError(f"this array needs {array.ndim} whole numbers as its index here")
    return kinds


def pointer(context, builder, array_type, index_type, array, index):
    """A pointer to an element; negative indices count from the end, as in a subscript."""
    kinds = index_kinds(array_type, index_type)
    values = cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
    indices = [context.cast(builder, value, kind, types.intp) for value, kind in zip(values, kinds, strict=True)]
    view = context.make_array(array_type)(context, builder, array)
    wraps = any(kind.signed and not _is_natural(kind) for kind in kinds)
    return cgutils.get_item_pointer(context, builder, array_type, view, indices, wraparound=wraps)


def _is_natural(kind):
    return isinstance(kind, types.IntegerLiteral) and kind.literal_value >= 0


def shared_address(context, builder, array_type, index_type, array, index):
    """Where an element of a shared array lies in its block's shared memory: what PTX takes as an address there.

    Computed in 32 bits, in which the compiler can take a sum of indices apart and reuse the pieces; a negative index
    does not count from the end, since that would cost a comparison for each.
    """
    kinds = index_kinds(array_type, index_type)
    values = cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
    view = context.make_array(array_type)(context, builder, array)
    in_shared = builder.addrspacecast(view.data, ir.PointerType(view.data.type.pointee, SHARED))
    address = builder.ptrtoint(in_shared, I32)
    strides = cgutils.unpack_tuple(builder, view.strides, array_type.ndim)
    for value, kind, stride in zip(values, kinds, strides, strict=True):
        place = context.cast(builder, value, kind, types.int32)
        address = builder.add(address, builder.mul(place, builder.trunc(stride, I32)))
    return address


def assembly(builder, text: str, result, operands, *, ties=(), memory=True):
    """Inline assembly: `$0`, `$1` ... are the results, then the operands.

    `result` is a type, a tuple of types or VOID; `ties` are the operands that share their registers with a result,
    first to last.
    """
    results = () if result is VOID else result if isinstance(result, tuple) else (result,)
    returned = ir.LiteralStructType(results) if isinstance(result, tuple) else result
    constraints = [f"={REGISTERS[kind]}" for kind in results]
    constraints += [REGISTERS[operand.type] for operand in operands]
    constraints += [str(number) for number in range(len(ties))]
    constraints += ["~{memory}"] * memory
    values = [*operands, *ties]
    kind = ir.FunctionType(returned, [value.type for value in values])
    return builder.call(ir.InlineAsm(kind, text, ",".join(constraints), side_effect=memory), values)


def unpacked(builder, result, count: int) -> list:
    return [builder.extract_value(result, i) for i in range(count)]


def fixed(number: int, kind=I32):
    return ir.Constant(kind, number)


def plain(text: str):
    """The definition of an instruction without operands."""

    def definition(typing):
        def code(context, builder, signature, arguments):
            assembly(builder, text, VOID, [])
            return context.get_dummy_value()

        return types.void(), code

    return definition
