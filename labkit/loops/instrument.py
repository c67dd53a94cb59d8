"""Instrumentation of a loop: it logs every access and counts every floating-point operation.

`total += A[i, k] * B[k, j]` becomes
`total = count_flop(notes, total + count_flop(notes, load(notes, A, 0, (whole_index(i), whole_index(k))) * load(...)))`.
Each iteration of a loop begins with `if should_pause(notes, loop): yield`, which makes the function a generator.
The language is closed: anything not listed here is refused with its line and what to write instead, so that a
stranger's loop can only compute.
"""

import ast
import builtins
import copy
import difflib
import inspect
import linecache
import numbers
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from labkit.loops import memory
from labkit.simulator.errors import KernelError
from labkit.trace import Site

CALLS = {"range", "min", "max", "abs", "len", "int", "float"}
CASTS = {"float32", "float64", "int32", "int64", "uint32", "uint64"}
ARRAY_ATTRIBUTES = {"shape", "size", "ndim"}
MAX_HOOKS = 100  # accesses, operations and loops: the compiler takes 5 s for so many, and ever more for more
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd, ast.Not)
REFUSED = {
    ast.ListComp: "a list comprehension makes a new list; write a `for` loop that stores into an array",
    ast.GeneratorExp: "a generator hides the loop; write a `for` loop",
    ast.List: "lists are not compiled here; store into one of the arrays you were given",
    ast.Dict: "dictionaries are not compiled here; store into one of the arrays you were given",
    ast.Try: "`try` is not compiled here; leave it out",
    ast.With: "`with` is not compiled here; leave it out",
    ast.Import: "an `import` belongs above the function",
    ast.ImportFrom: "an `import` belongs above the function",
    ast.FunctionDef: "a function inside the loop is not traced; write its lines where they are needed",
    ast.Lambda: "a function inside the loop is not traced; write its lines where they are needed",
    ast.JoinedStr: "text is not compiled here; leave it out",
    ast.Assert: "`assert` is not compiled here; leave it out",
    ast.Raise: "`raise` is not compiled here; leave it out",
    ast.Pow: "`**` is not traced; multiply instead",
    ast.Slice: "a slice works on a whole row at once; write the loop over its elements",
}


@dataclass(frozen=True)
class Instrumented:
    """An instrumented loop.

    generator: the rewritten function, which yields where it should pause; its arguments are the loop's, then `Notes`,
    then the values of `outer_numbers`: the numbers that the loop takes from outside, by name. dividing: lines that can
    fail at run time: divisions, and ranges with a step. loops: line of each loop, and whether it is a `while`; the
    first entry is the function's own body. Instances with the same source at the same place are equal: they have the
    same code, and may differ in the values of `outer_numbers`.
    """

    generator: FunctionType = field(compare=False)
    sites: tuple[Site, ...]
    outer_numbers: dict[str, numbers.Number] = field(compare=False)
    dividing: tuple[int, ...]
    loops: tuple[tuple[int, bool], ...]
    source: str
    filename: str
    first_line: int


def instrument(loop: Callable, args: tuple) -> Instrumented:
    """Instrument a loop for arguments of these types.

    Raises
    ------
    TypeError
        The loop is not a function whose source can be read, or takes another number of arguments.
    KernelError
        The loop has a construct that cannot be traced.
    """
    function = getattr(loop, "py_func", loop)
    if not inspect.isfunction(function):
        raise TypeError(f"a loop is a function, and this is a {type(loop).__name__}: hand over its name alone")
    try:
        lines, first_line = inspect.getsourcelines(function.__code__)
    except (OSError, TypeError):
        raise TypeError(
            f"the source of {function.__name__} cannot be read: define it with `def` in a cell or a file"
        ) from None
    source = textwrap.dedent("".join(lines))
    definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise KernelError("a loop is written with `def`", first_line)
    ast.increment_lineno(definition, first_line - 1)

    rewriter = _Rewriter(function, definition, args, source.splitlines(), first_line)
    body = rewriter.iteration(definition.body, 0)
    parameters = [*inspect.signature(function).parameters, "notes__", *rewriter.outer_numbers]
    definition.args = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None, [])
    definition.body, definition.decorator_list, definition.returns = body, [], None
    module = ast.fix_missing_locations(ast.Module([definition], []))

    filename = function.__code__.co_filename
    hooks = ("load", "store", "count_flop", "whole_index", "should_pause", "leave_loop")
    namespace: dict[str, Any] = {f"{name}__": getattr(memory, name) for name in hooks} | {"np": np}
    exec(compile(module, filename, "exec"), namespace)
    return Instrumented(
        namespace[definition.name],
        tuple(rewriter.sites),
        rewriter.outer_numbers,
        tuple(sorted(rewriter.dividing)),
        tuple(rewriter.loops),
        "".join(lines),
        filename,
        first_line,
    )


def source_line(filename: str, line: int) -> str:
    """Return a line of a file or notebook cell, without its indentation."""
    return linecache.getline(filename, line).strip()


class _Rewriter(ast.NodeTransformer):
    """Rewrites the statements and expressions of a loop, and raises KernelError for what is not listed."""

    def __init__(self, function, definition, args, lines, first_line: int):
        self.names = list(inspect.signature(function).parameters)
        if len(self.names) != len(args):
            raise TypeError(f"{function.__name__} takes {len(self.names)} arguments and is given {len(args)}")
        self.arrays = {
            name: value for name, value in zip(self.names, args, strict=True) if isinstance(value, np.ndarray)
        }
        self.assigned = {
            node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        reserved = [name for name in (*self.names, *self.assigned) if name.endswith("__")]
        if reserved:
            raise KernelError(f"`{reserved[0]}` ends in `__`, as names of the tracer do; rename it", first_line)
        closure = inspect.getclosurevars(function)
        self.outer = {**closure.globals, **closure.nonlocals}
        self.outer_numbers: dict[str, numbers.Number] = {}
        self.dividing: set[int] = set()
        self.loops = [(first_line, False)]
        self.sites: list[Site] = []
        self.hooks = 0
        self.lines, self.first_line = lines, first_line

    # --- statements

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return ast.copy_location(ast.Pass(), node)
        if isinstance(node.value, ast.Call):
            self.check_call(node.value)
        raise self.error(node, f"`{self.text(node)}` computes something and drops it; store it, or leave it out")

    def visit_Assign(self, node):
        if len(node.targets) != 1:
            raise self.error(node, "two `=` in one line are not traced; write two lines")
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            raise self.error(node, f"{node.value.id} gets a second name here; use {node.value.id} itself")
        target, value = node.targets[0], self.visit(node.value)
        if isinstance(target, ast.Subscript):
            return ast.copy_location(ast.Expr(self.store(target, value)), node)
        self.check_target(target)
        return ast.copy_location(ast.Assign([target], value), node)

    def visit_AnnAssign(self, node):
        raise self.error(node, "a type here means nothing to the compiler; leave it out")

    def visit_AugAssign(self, node):
        self.check_operator(node)
        read = copy.deepcopy(node.target)
        read.ctx = ast.Load()
        value = self.count_result(ast.copy_location(ast.BinOp(self.visit(read), node.op, self.visit(node.value)), node))
        if isinstance(node.target, ast.Subscript):
            return ast.copy_location(ast.Expr(self.store(node.target, value)), node)
        self.check_target(node.target)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_For(self, node):
        function = node.iter.func if isinstance(node.iter, ast.Call) else None
        if not isinstance(function, ast.Name) or function.id != "range":
            hint = f"write `for {self.text(node.target)} in range(...)`"
            if "prange" in ast.unparse(node.iter):
                hint = "`prange` spreads it over cores; use `range`"
            raise self.error(node, f"loops go over `range`, and this one goes over `{self.text(node.iter)}`: {hint}")
        if node.orelse:
            raise self.error(node, "`else` after a loop is not traced; write it as an `if`")
        self.check_target(node.target)
        node.iter = self.visit(node.iter)
        return self.rewrite_loop(node)

    def visit_While(self, node):
        if node.orelse:
            raise self.error(node, "`else` after a loop is not traced; write it as an `if`")
        node.test = self.visit(node.test)
        return self.rewrite_loop(node)

    def visit_Return(self, node):
        if node.value is None or isinstance(node.value, ast.Constant) and node.value.value is None:
            return node
        raise self.error(node, "the result goes into the array you were given; leave out what `return` hands back")

    def visit_Pass(self, node: ast.AST) -> ast.AST:
        return node

    visit_Break = visit_Continue = visit_Pass

    # --- expressions

    def visit_BinOp(self, node):
        self.check_operator(node)
        return self.count_result(self.generic_visit(node))

    def visit_UnaryOp(self, node):
        self.check_operator(node)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.AST) -> ast.AST:
        return self.generic_visit(node)

    visit_If = visit_BoolOp = visit_IfExp = visit_Tuple = visit_Compare

    def visit_Constant(self, node):
        if isinstance(node.value, bool | int | float):
            return node
        raise self.error(node, f"`{self.text(node)}` is not a number; only numbers are compiled here")

    def visit_Name(self, node):
        name = node.id
        if name in self.arrays:
            raise self.error(node, f"{name} is a whole array here; work on its elements, as in `{name}[i, j]`")
        if name in self.names or name in self.assigned:
            return node
        if name not in self.outer:
            close = difflib.get_close_matches(name, [*self.names, *self.assigned, *self.outer], 1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            what = "cannot be used as a value here" if hasattr(builtins, name) else f"is not defined{hint}"
            raise self.error(node, f"`{name}` {what}")
        value = self.outer[name]
        if not isinstance(value, numbers.Number):
            kind = type(value).__name__
            raise self.error(node, f"`{name}` is a {kind}; only numbers can be used from outside the loop")
        self.outer_numbers[name] = value
        return node

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            if node.attr in ARRAY_ATTRIBUTES:
                return node
            reason = "of an array use its elements, `.shape` and `.size`"
        else:
            reason = "write it out with numbers and array elements"
        raise self.error(node, f"`{self.text(node)}` is not traced; {reason}")

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            node.value = self.visit(node.value)
            node.slice = self.visit(node.slice)
            return node
        index = self.index(node)
        return ast.copy_location(self.hook("load", self.array(node), self.site(node, "load"), index), node)

    def visit_Call(self, node):
        name = self.check_call(node)
        only = node.args[0] if len(node.args) == 1 else None
        if name == "len" and isinstance(only, ast.Name) and only.id in self.arrays:
            return node
        if name == "range" and len(node.args) == 3:
            self.dividing.add(node.lineno)
        node.args = [self.visit(argument) for argument in node.args]
        if name in CASTS:
            node.func = ast.copy_location(ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load()), node)
        return node

    def generic_visit(self, node: ast.AST) -> Any:
        reason = REFUSED.get(type(node))
        if reason:
            raise self.error(node, reason)
        known = ast.If | ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.Tuple
        if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, known):
            first_line = self.text(node).splitlines()[0]
            raise self.error(node, f"`{first_line}` is not traced; use `for`, `if` and array elements")
        return super().generic_visit(node)

    # --- parts

    def rewrite_loop(self, node):
        """Return a loop with rewritten iterations, and the statement that follows it."""
        number = len(self.loops)
        self.loops.append((node.lineno, isinstance(node, ast.While)))
        node.body = self.iteration(node.body, number)
        return [node, ast.copy_location(ast.Expr(self.hook("leave_loop", number)), node)]

    def iteration(self, body, loop):
        """Return the statements of one iteration of a loop, which first checks whether to pause."""
        pause = ast.copy_location(ast.If(self.hook("should_pause", loop), [ast.Expr(ast.Yield())], []), body[0])
        return [pause, *self.generic_visit(ast.Module(body, [])).body]

    def count_result(self, node):
        return ast.copy_location(self.hook("count_flop", node), node)

    def store(self, target, value):
        index = self.index(target)
        call = self.hook("store", self.array(target), self.site(target, "store"), index, value)
        return ast.copy_location(call, target)

    def index(self, node):
        """Return the index expression; `A[i][k]` counts as `A[i, k]`."""
        parts = []
        while isinstance(node, ast.Subscript):
            parts = (list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]) + parts
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.arrays:
            known = ", ".join(self.arrays)
            raise self.error(node, f"`{self.text(node)}` is not an array of this loop; index one of {known}")
        for part in parts:
            if isinstance(part, ast.Slice):
                raise self.error(part, REFUSED[ast.Slice])
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
                raise self.error(part, f"`{self.text(part)}` is not a whole number; an index is divided with `//`")
        ndim = self.arrays[node.id].ndim
        if len(parts) != ndim:
            given = f"{len(parts)} index{'es' * (len(parts) != 1)}"
            raise self.error(node, f"{node.id} has {ndim} dimensions and is given {given}")
        indices: list[ast.expr] = [
            ast.Call(ast.Name("whole_index__", ast.Load()), [self.visit(part)], []) for part in parts
        ]
        return ast.Tuple(indices, ast.Load())

    def array(self, node):
        while isinstance(node, ast.Subscript):
            node = node.value
        assert isinstance(node, ast.Name)  # `index` refuses all else
        return ast.Name(node.id, ast.Load())

    def site(self, node, kind):
        name = self.array(node).id
        dtype = str(self.arrays[name].dtype)
        self.sites.append(Site(node.lineno, node.col_offset, name, kind, "global", dtype, self.text(node)))
        return len(self.sites) - 1

    def hook(self, name, *arguments):
        self.hooks += 1
        if self.hooks > MAX_HOOKS:
            message = (
                f"more than {MAX_HOOKS} accesses and operations are not compiled here; write what repeats as a loop"
            )
            raise KernelError(message, self.first_line)
        nodes: list[Any] = [a if isinstance(a, ast.AST) else ast.Constant(a) for a in arguments]
        return ast.Call(ast.Name(f"{name}__", ast.Load()), [ast.Name("notes__", ast.Load()), *nodes], [])

    def check_operator(self, node):
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            self.dividing.add(node.lineno)
        if isinstance(node.op, ast.MatMult):
            raise self.error(node, "`@` hides the loops that are to be written here; multiply and add single elements")
        if not isinstance(node.op, OPERATORS):
            reason = f"`{self.text(node)}` is not traced; use + - * / // and %"
            raise self.error(node, REFUSED.get(type(node.op), reason))

    def check_call(self, node):
        """Return the name of the called function; raise KernelError for one that cannot be called."""
        text = self.text(node.func)
        name = text.rsplit(".", 1)[-1]
        module = self.outer.get(text.split(".")[0])
        plain = isinstance(node.func, ast.Name) and name in CALLS and name not in self.outer
        cast = name in CASTS and (module is np if "." in text else module is getattr(np, name))
        if node.keywords:
            raise self.error(node, f"`{text}` takes no named arguments here; give them in their order")
        if plain or cast:
            return name
        if text == "print":
            raise self.error(node, "`print` is not compiled here; look at the trace instead")
        if text.split(".")[0] in self.arrays:
            raise self.error(node, f"`{self.text(node)}` hides a loop; work on single elements")
        if isinstance(module, ModuleType):
            raise self.error(node, f"`{text}` hides a loop or more; work on single elements, with + and *")
        if name == "append" or text in ("list", "sum", "zip", "enumerate"):
            reason = "works on lists, which are not compiled here; use `range` and array elements"
            raise self.error(node, f"`{text}` {reason}")
        if module is None and not hasattr(builtins, text):
            raise self.error(node, f"`{text}` is not defined")
        raise self.error(node, f"`{text}` cannot be called here; write its lines where they are needed")

    def check_target(self, target):
        for node in target.elts if isinstance(target, ast.Tuple) else [target]:
            if not isinstance(node, ast.Name):
                text = self.text(node)
                raise self.error(node, f"`{text}` cannot be assigned here; use a plain name or an array element")
            if node.id in self.arrays:
                raise self.error(node, f"{node.id} is an array; assign to its elements, as in `{node.id}[i, j] = ...`")

    def text(self, node):
        return ast.get_source_segment("\n".join([""] * (self.first_line - 1) + self.lines), node) or ast.unparse(node)

    def error(self, node, message):
        return KernelError(message, getattr(node, "lineno", self.first_line))
