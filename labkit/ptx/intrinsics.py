"""Intrinsics of numba-cuda for the functions of `labkit.ptx`, and the code generation that they share.

`kind` and `kinds` are numba's types of arguments, where code is generated LLVM's.
"""

from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from types import ModuleType

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.extending import infer
from numba.cuda.typing.templates import infer_global, make_intrinsic_template

from labkit.ptx.capabilities import is_missing
from labkit.ptx.formats import NAMES
from labkit.simulator.errors import LaunchError
from labkit.simulator.instruction import instruction_of

VOID, I16, I32, I64 = ir.VoidType(), ir.IntType(16), ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
SHARED = 3  # LLVM's number of the address space
REGISTERS = {I16: "h", I32: "r", I64: "l", F32: "f", F64: "d"}  # constraints of operands in inline assembly
_definitions = {}  # of the functions of `labkit.ptx` whose machine code is loaded


def intrinsic(function):
    """Return a decorator that makes a definition the GPU code of a function of `labkit.ptx`.

    The definition takes numba's typing context and the types of the arguments, and returns the signature and the
    function that generates LLVM IR, as in `numba.cuda.extending.intrinsic`. A function that differs by number format
    has the parameter FORMAT, the number of a compile-time constant such as `ptx.BF16`.
    """
    documented = signature(function)
    parameters = list(documented.parameters)
    typing = Parameter("typing", Parameter.POSITIONAL_OR_KEYWORD)

    def register(definition):
        @wraps(definition)
        def checked(typing, *kinds):
            numba_signature, generate_code = definition(typing, *kinds)
            format_number = kinds[parameters.index("FORMAT")].literal_value if "FORMAT" in parameters else None

            def on_this_gpu(*arguments):
                check_capability(function, format_number)
                return generate_code(*arguments)

            return numba_signature, on_this_gpu

        checked.__signature__ = documented.replace(parameters=[typing, *documented.parameters.values()])
        options = {"prefer_literal": True, "kwargs": {"target": "cuda"}}
        template = make_intrinsic_template(function, checked, function.__name__, **options)
        infer(template)
        infer_global(function, types.Function(template))
        _definitions[function] = definition
        return definition

    return register


def result_type(function, kinds):
    """Return the type of what a function of `labkit.ptx` returns for arguments of these types."""
    numba_signature, _ = _definitions[function](None, *kinds)
    return numba_signature.return_type


def load_gpu_code(value):
    """Import `on_gpu`, which generates GPU code, of an instruction or of all instructions in a module's namespace."""
    for function in [*vars(value).values()] if isinstance(value, ModuleType) else [value]:
        if instruction_of(function):
            import_module(f"{function.__module__}.on_gpu")


def check_capability(function, format_number: int | None):
    """Raise LaunchError for an instruction, of this format if it has one, that the GPU lacks.

    `function.needs` is its least compute capability, by format number where formats differ; a third part "a" means that
    other architectures lack it.
    """
    capability = ConfigStack.top_or_none().compute_capability  # of the kernel being compiled
    by_format = isinstance(function.needs, dict)
    needed = function.needs[format_number] if by_format else function.needs
    if needed and is_missing(capability, needed):
        name = f"`ptx.{function.__name__}`" + (f" of {NAMES[format_number]}" if by_format else "")
        raise LaunchError(
            f"{name} needs a GPU of compute capability {_describe_capability(needed)}, and this one has "
            f"{_describe_capability(capability)}; `labkit.simulate` runs the kernel anyway"
        )


def _describe_capability(capability):
    restriction = " and no other" if len(capability) == 3 and capability[2] == "a" else ""
    return f"{capability[0]}.{capability[1]}{restriction}"


def literal_value(kind, what: str) -> int:
    """Return the value of a compile-time constant; raise TypingError if it is known only when the kernel runs."""
    if not isinstance(kind, types.IntegerLiteral):
        raise TypingError(f"{what} is fixed when a kernel is compiled: make it a constant of the module")
    return kind.literal_value


def index_types(array, index) -> tuple:
    """Return the types of the indices, one per axis of the array."""
    kinds = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    if not isinstance(array, types.Array) or array.layout != "C":
        raise TypingError("this instruction needs an array in C order: pass a copy")
    if len(kinds) != array.ndim or not all(isinstance(kind, types.Integer) for kind in kinds):
        raise TypingError(f"this array needs {array.ndim} whole numbers as its index here")
    return kinds


def element_pointer(context, builder, array_type, index_type, array, index):
    """Return a pointer to an element; negative indices count from the end, as in a subscript."""
    kinds = index_types(array_type, index_type)
    values = cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
    indices = [context.cast(builder, value, kind, types.intp) for value, kind in zip(values, kinds, strict=True)]
    view = context.make_array(array_type)(context, builder, array)
    may_be_negative = any(kind.signed and getattr(kind, "literal_value", -1) < 0 for kind in kinds)
    return cgutils.get_item_pointer(context, builder, array_type, view, indices, wraparound=may_be_negative)


def shared_address(context, builder, array_type, index_type, array, index):
    """Return the address of an element within the block's shared memory, as PTX takes it.

    Computed in 32 bits, which lets the compiler reuse parts of sums of indices. A negative index does not count from
    the end, since that would cost a comparison for each.
    """
    kinds = index_types(array_type, index_type)
    values = cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
    view = context.make_array(array_type)(context, builder, array)
    in_shared = builder.addrspacecast(view.data, ir.PointerType(view.data.type.pointee, SHARED))
    address = builder.ptrtoint(in_shared, I32)
    strides = cgutils.unpack_tuple(builder, view.strides, array_type.ndim)
    for value, kind, stride in zip(values, kinds, strides, strict=True):
        index = context.cast(builder, value, kind, types.int32)
        address = builder.add(address, builder.mul(index, builder.trunc(stride, I32)))
    return address


def emit_assembly(builder, text: str, result, operands, *, ties=(), memory=True):
    """Emit inline assembly, in which `$0`, `$1` ... are the results, then the operands.

    Parameters
    ----------
    result
        An LLVM type, a tuple of these, or VOID.
    ties
        Further operands, which share the registers of the results, first to last.
    memory
        Whether it accesses memory or has other side effects.
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


def unpack(builder, result, count: int) -> list:
    return [builder.extract_value(result, i) for i in range(count)]


def constant(number: int, kind=I32):
    return ir.Constant(kind, number)


def bare_instruction(text: str):
    """Return the definition of an instruction without operands."""

    def definition(typing):
        return types.void(), assembly_code(text)

    return definition


def with_literal(text: str, what: str):
    """Return the definition of an instruction whose one operand, `{}` in its text, is fixed at compile time."""

    def definition(typing, number):
        return types.void(number), assembly_code(text.format(literal_value(number, what)))

    return definition


def pure_instruction(text: str, result, *kinds):
    """Return the definition of an instruction without side effects, given numba's types of result and arguments.

    Arguments with literal types, which are known at compile time, are not operands.
    """

    def definition(typing, *_):
        def code(context, builder, signature, arguments):
            operands = [argument for argument, kind in zip(arguments, kinds) if not isinstance(kind, types.Literal)]
            return emit_assembly(builder, text, context.get_value_type(result), operands, memory=False)

        return result(*kinds), code

    return definition


def assembly_code(text: str, make_operands=lambda *_: []):
    """Return a code generator of inline assembly without results; `make_operands` takes what the generator takes."""

    def code(context, builder, signature, arguments):
        emit_assembly(builder, text, VOID, make_operands(context, builder, signature, arguments))
        return context.get_dummy_value()

    return code
