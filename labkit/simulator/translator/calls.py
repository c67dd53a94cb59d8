"""Calls: the meaning of the called name; device functions, `len`, `print`."""

import ast
import operator
from dataclasses import replace
from inspect import Parameter, Signature
from types import FunctionType

from labkit.simulator import language, numba_types
from labkit.simulator.errors import KernelError, NotFixed
from labkit.simulator.functions.reductions import REDUCTIONS
from labkit.simulator.instruction import instruction_of
from labkit.simulator.limits import MAX_FUNCTIONS
from labkit.simulator.reading.source import inner_function, python_function, read_source
from labkit.simulator.reading.trusted import Device, fields_of, trusted
from labkit.simulator.seam import types
from labkit.simulator.signatures import declared_signatures
from labkit.simulator.translator.control_flow import BARRIERS
from labkit.simulator.translator.refused import NO_PYTHON_FUNCTION, PYTHON_FUNCTIONS
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, Array, Fixed, Maybe, Range, Tuple, Value, describe, is_known, is_tuple

AXES = {path.rpartition(".")[0] for path in language.POSITIONS if path.endswith(".x")}  # `cuda.threadIdx` and the like
ARGUMENTS = {*language.CASTS, *language.FUNCTIONS, *language.CALLS, *language.PREFIXES, *AXES}  # that a name stands for
ANY_WAY = Parameter.POSITIONAL_OR_KEYWORD
PYTHON_TYPES = {"int": types.int64, "float": types.float64, "complex": types.complex128}
METHODS = {  # of numbers and arrays, and what translates each
    "bit_count": "bit_count",
    "conjugate": "conjugate",
    "reshape": "reshape",
    "view": "view_method",
}


class Calls(Variables):
    """Resolves a call, and writes its code."""

    def of_Call(self, node):
        return self.with_inferred_type(node, self.expression_call(node, result_used=True))

    def expression_call(self, node, result_used):
        """Return the value of a call; `result_used` is False for a call that is a statement."""
        instruction = instruction_of(self.value_outside_kernel(node.func))
        if instruction is not None:
            return self.instruction(node, instruction)
        path = self.dotted(node.func)
        if path is None:
            fields = fields_of(self.value_outside_kernel(node.func))
            return self.named_tuple(node, fields) if fields else self.other_call(node)
        if node.keywords and path == "print":
            self.fail(
                node,
                f"`print` in a kernel takes no `{node.keywords[0].arg}`; it prints its values and starts a new line",
            )
        if node.keywords and path not in ("cuda.shared.array", "cuda.local.array"):
            self.fail(node, "give the arguments by position, without names")
        if path in language.CASTS:
            return self.cast(node, language.CASTS[path])
        if path in language.VECTORS:
            return self.vector(node, path)
        if path.startswith("cuda.atomic."):
            return self.atomic(node, path.rsplit(".", 1)[1], result_used)
        if path in language.FUNCTIONS:
            return self.function_call(node, language.FUNCTIONS[path])
        if path in REDUCTIONS:
            return self.reduction(node, path)
        if path in language.INTRINSICS:
            return getattr(self, language.INTRINSICS[path])(node)
        special = {"len": self.length, "range": self.range_value, "tuple": self.tuple, "print": self.print}.get(path)
        if special:
            return special(node)
        if path in language.NO_EFFECT:
            return Value("None", types.none)
        if path in ("enumerate", "zip"):
            self.fail(node, f"`{path}` belongs into a `for` line")
        if path in language.POSITIONS:
            self.fail(node, f"`{self.written(node.func)}` is a value, not a function: leave the parentheses out")
        self.fail(node, language.explain_unknown(path, self.written(node.func)))

    def instruction(self, node, instruction):
        """Translate a call of an instruction that a module above the simulator declares."""
        if self.program.pauses:
            self.fail(
                node,
                f"the orders of a kernel that calls `{self.written(node.func)}` are not explored; explore one that "
                "loads and stores element by element",
            )
        if node.keywords:
            self.fail(node, "give the arguments by position, without names")
        if instruction.family is not None:
            self.program.use(instruction.family)
        return instruction.meaning.translate(self, node)

    def other_call(self, node):
        """Translate a call of a device function, or of a method of a number or an array; refuse others."""
        function = node.func
        device = python_function(self.value_outside_kernel(function)) or inner_function(self.function, function)
        if device is not None:
            if read_source(device).is_inner and node.keywords:
                self.fail(node, "numba takes the arguments of a function inside a kernel by position, without names")
            return self.device_call(node, device, declared_signatures(self.value_outside_kernel(function)))
        if isinstance(function, ast.Name):
            value = self.name_outside_kernel(function.id)
            if function.id in self.env and value is MISSING:
                self.fail(
                    node,
                    f"`{function.id}` is a variable, not a function; an element is `{function.id}[...]`, with brackets",
                )
            if isinstance(value, FunctionType):
                self.fail(
                    node, f"`{function.id}` is an ordinary Python function; put `@cuda.jit(device=True)` above it"
                )
            if value is MISSING:
                if function.id in PYTHON_FUNCTIONS:
                    self.fail(node, NO_PYTHON_FUNCTION.format(name=function.id))
                hint = language.suggest_import(function.id) or language.suggest_name(function.id)
                self.fail(node, f"the function `{function.id}` is not defined{hint}")
        if isinstance(function, ast.Attribute):
            if self.value_outside_kernel(function) is not None:
                self.fail(
                    node,
                    f"`{self.written(function)}` is not a function for kernels; call it outside and pass the result as "
                    "an argument",
                )
            if function.attr in METHODS:
                return getattr(self, METHODS[function.attr])(node)
            self.of_Attribute(function)
            self.fail(node, f"`{self.written(function)}` is not a function: leave the parentheses out")
        if (
            isinstance(function, ast.Subscript)
            and isinstance(function.value, ast.Name)
            and python_function(self.names.get(function.value.id))
        ):
            self.fail(
                node,
                f"a kernel cannot launch another: launch `{function.value.id}` after this one, or make it a "
                "device function",
            )
        self.fail(node, f"`{self.written(function)}` cannot be called in a kernel")

    def argument(self, node) -> Value:
        """Return an argument of a device function: a value, or a function or dtype, for which it is compiled anew."""
        path = self.dotted(node)
        instruction = instruction_of(self.value_outside_kernel(node))
        waits = (instruction and instruction.waits) or (path and path.rpartition(".")[2] in BARRIERS)
        if waits and not hasattr(node, "is_expanded"):
            self.fail(node, f"`{self.written(node)}` is called where the threads wait; it cannot be handed on")
        if path in ARGUMENTS:
            return Value("None", Fixed(path, path))
        device = inner_function(self.function, node) or python_function(self.value_outside_kernel(node))
        if device and read_source(device).free:
            names = ", ".join(f"`{name}`" for name in read_source(device).free)
            self.fail(node, f"a function that reads variables of the kernel cannot be handed on; give it {names}")
        if device:
            return Value("None", Fixed(Device(device)))
        return self.expression_or_none(node)

    def device_call(self, node, function, signatures):
        arguments = []
        for parameter, argument in self.bind(node, function):
            if isinstance(argument, ast.AST):
                arguments.append(self.with_its_literal(argument, self.argument(argument)))
            elif (default := self.compile_time_value(trusted(argument), node)) is not None:
                arguments.append(default)
            else:
                self.fail(node, f"the default of `{parameter}` has no meaning in a kernel; give the argument")
        for name in read_source(function).free:
            arguments.append(self.expression(ast.copy_location(ast.Name(name, ast.Load()), node)))
        if signatures and len(signatures[0]) == len(arguments):
            for part, argument in zip(node.args, arguments):
                if isinstance(argument.type, Maybe):
                    self.fail(part, f"`{self.written(part)}` may be None, and `{function.__name__}` takes a number")
            arguments = [self.convert_to_declared(a, kind) for a, kind in zip(arguments, signatures[0])]
        return self.call_function(node, function, arguments)

    def bind(self, node, function) -> list[tuple]:
        """Return the parameters of a device function, each with the argument's node or with its default."""
        names, defaults = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
        defaults = (Parameter.empty,) * (len(names) - len(defaults)) + defaults
        signature = Signature([Parameter(name, ANY_WAY, default=default) for name, default in zip(names, defaults)])
        if any(keyword.arg is None for keyword in node.keywords):
            self.fail(node, "`**` has no meaning in a call here: give the arguments one by one")
        try:
            bound = signature.bind(*node.args, **{keyword.arg: keyword.value for keyword in node.keywords})
        except TypeError as error:
            self.fail(node, f"`{function.__name__}({', '.join(names)})`: {error}")
        bound.apply_defaults()
        return list(bound.arguments.items())

    def with_its_literal(self, node, value) -> Value:
        """Return the value; its number, or tuple of numbers, stays known only if it is a literal for numba."""
        if not isinstance(value.type, types.Type | Tuple):
            return value
        literal = self.literal(node)
        return replace(value, static=literal if is_known(literal) else MISSING)

    def call_function(self, node, function, arguments) -> Value:
        """Return the result of a device function for these arguments."""
        kinds = tuple(a.type for a in arguments)
        try:
            callee, kind = self.device_function(node, function, kinds)
        except NotFixed:  # numba compiles such a function for the literals that it is given
            kinds = tuple(a.type if a.static is MISSING else Fixed(a.static) for a in arguments)
            callee, kind = self.device_function(node, function, kinds)
        name = self.constant(callee)
        self.flush_flops()
        wait = "yield from " if self.program.blocking else ""
        call = f"({wait}{name}(w, {self.mask}{''.join(', ' + a.code for a in arguments)}))"
        result = self.temp(call, kind)  # once, however many values it has
        if callee in self.program.raising:
            self.exits += 1
            self.drop_exited()
        return self.temp(self.convert_type(result.code, kind), kind)

    def convert_to_declared(self, value, kind):
        """Convert an argument as a device function's signature declares."""
        return Value(self.converted(value, kind), kind) if isinstance(kind, types.Number | types.Boolean) else value

    def device_function(self, node, function, kinds):
        """Return the translated function for arguments of these types, and the type of its result."""
        position = None if read_source(function).filename == self.program.filename else (node.lineno, node.col_offset)
        key, compiled = (function, kinds, position), self.program.compiled
        if any(f is function and done is None for (f, *_), done in compiled.items()):
            self.fail(node, f"`{function.__name__}` calls itself; recursion does not work in a kernel, write a loop")
        if key not in compiled:
            if len(compiled) >= MAX_FUNCTIONS:
                self.fail(node, f"this kernel calls more than {MAX_FUNCTIONS} device functions; write them as one loop")
            compiled[key] = None
            try:
                compiled[key] = type(self)(self.program, function, kinds, False, position).run()
            except KernelError:
                del compiled[key]
                raise
        return compiled[key]

    def number_arguments(self, node, count, what):
        """Return the values of `count` arguments, which must be numbers."""
        if len(node.args) != count:
            self.fail(node, f"{what} takes {count} argument{'s' * (count != 1)}, not {len(node.args)}")
        return [self.scalar(a, what) for a in node.args]

    def reduction(self, node, path):
        """Translate `np.sum(x)` and similar functions, which each thread computes over the whole array."""
        array = self.expression(node.args[0]) if len(node.args) == 1 else None
        if array is None or not isinstance(array.type, Array):
            self.fail(node, f"`{self.written(node.func)}` takes one array here")
        kind = array.type.dtype
        if path.removeprefix("np.").removeprefix("nan") not in ("min", "max"):
            kind = numba_types.resolve(operator.add, (kind, types.intp))[0]
        return self.call_function(node, REDUCTIONS[path].py_func, [array, Value(f"{self.dtype(kind)}.type(0)", kind)])

    def tuple(self, node):
        """Translate `tuple(t)` of a tuple, which is the tuple."""
        value = self.expression(node.args[0]) if len(node.args) == 1 else None
        if value is None or not isinstance(value.type, Tuple):
            self.fail(node, "`tuple` takes one tuple here; a kernel cannot make one of an array")
        return value

    def has_type(self, node):
        """Translate `isinstance(x, int)`, which numba knows when it compiles: int is int64 alone, float is float64."""
        if len(node.args) != 2:
            self.fail(node, "`isinstance` takes a value and a type, or a tuple of types")
        kind = self.expression(node.args[0]).type
        wanted = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        found = False
        for part in wanted:
            path = self.dotted(part)
            if path != "tuple" and path not in PYTHON_TYPES and path not in language.CASTS:
                self.fail(
                    part, f"`{self.written(part)}` is neither the type of a number nor `tuple`; compare with another"
                )
            found |= is_tuple(kind) if path == "tuple" else kind == PYTHON_TYPES.get(path, language.CASTS.get(path))
        return replace(self.compile_time_value(found, node), static=MISSING)

    def length(self, node):
        if len(node.args) != 1:
            self.fail(node, "`len` takes one argument")
        value = self.expression(node.args[0])
        if isinstance(value.type, Array):
            return Value(f"{value.code}.shape_values[0]", types.int64)
        if isinstance(value.type, Range):
            return self.temp(f"trip_counts(*{value.code})", types.int64)
        if isinstance(value.type, Tuple):
            return self.compile_time_value(len(value.type.items), node)
        self.fail(node, f"`{self.written(node.args[0])}` is {describe(value.type)} and has no length")

    def print(self, node):
        for argument in node.args:
            if _makes_text(argument):
                self.fail(
                    argument,
                    "`print` in a kernel cannot format text: write `print('x', x)` with the values as they are",
                )
        values = [self.expression(a) for a in node.args]
        for value, argument in zip(values, node.args):
            if value.type is not str and not isinstance(value.type, types.Type):
                self.fail(argument, f"`print` in a kernel takes text and numbers, not {describe(value.type)}")
        self.program.prints = True
        self.emit(f"w.chunk.launch.print(w, {self.mask}{''.join(', ' + v.code for v in values)})")
        return Value("None", types.none)


def _makes_text(node) -> bool:
    """Return whether the expression makes text: an f-string, `%`, `+`, `format` or `str`."""
    if isinstance(node, ast.BinOp):
        return (
            _makes_text(node.left)
            or _makes_text(node.right)
            or any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right))
        )
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        return name in ("format", "str", "repr", "join")
    return isinstance(node, ast.JoinedStr) and any(isinstance(part, ast.FormattedValue) for part in node.values)
