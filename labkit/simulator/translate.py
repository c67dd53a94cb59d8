"""Kernel AST -> the source of a Python function (or generator) that runs all lanes of a warp set.

One walk infers numba's types, flow-sensitively as its SSA form does, and emits code. A loop is walked again
until the types at its head settle. Each region of the kernel (function, branch, loop body) has a mask
variable; an assignment blends new and old lanes only where the mask differs from that of the variable's
home, the innermost region that holds all its uses.
"""

import ast
import inspect
import linecache
import operator
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

from labkit.simulator import lanes
from labkit.simulator.errors import KernelError
from labkit.simulator.language import (
    ATOMICS,
    BUILTINS,
    CALLS,
    CASTS,
    CONSTANTS,
    FUNCTIONS,
    MODULES,
    NO_EFFECT,
    POSITIONS,
    PREFIXES,
    nearest,
    why_unknown,
)
from labkit.trace import Finding, Site

MISSING = object()


@dataclass(frozen=True)
class Array:
    """The type of an array: its elements, its rank, and the memory it lives in."""

    dtype: types.Type
    ndim: int
    space: str


@dataclass(frozen=True)
class Tuple:
    """The type of a tuple of values."""

    items: tuple


@dataclass(frozen=True)
class Value:
    """An expression: the code that yields it, its type, and its Python value where that is fixed."""

    code: str
    type: Any
    static: Any = MISSING


@dataclass
class Allocation:
    """A `cuda.shared.array` or `cuda.local.array` call: `shape` is 0 for dynamic shared memory."""

    name: str
    space: str
    shape: tuple[int, ...] | int
    dtype: np.dtype
    line: int


@dataclass
class Program:
    """A translated kernel and all that its device functions share with it."""

    watch: bool = False
    sites: dict[Site, int] = field(default_factory=dict)
    allocations: dict[tuple, Allocation] = field(default_factory=dict)
    advice: dict[tuple, Finding] = field(default_factory=dict)
    frozen: dict[tuple[FunctionType, str], Any] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    blocking: bool = False
    spins: bool = False
    prints: bool = False
    rebound: dict[str, int] = field(default_factory=dict)
    keeps_clocks: bool = False
    variables: dict[str, set] = field(default_factory=dict)
    namespace: dict[str, Any] = field(default_factory=dict)
    compiled: dict[tuple, tuple] = field(default_factory=dict)
    kernel: Any = None
    text: str = ""


@dataclass(frozen=True)
class Source:
    """A function's text, as its author sees it, and its parsed form with the lines of the file or cell."""

    text: str
    filename: str
    first_line: int
    tree: ast.FunctionDef


def read_source(function: FunctionType) -> Source:
    """The source of a Python function; raises KernelError where there is none to read."""
    if function.__name__ == "<lambda>":
        raise KernelError("a kernel is a function written with `def`, not a lambda", function.__code__.co_firstlineno)
    try:
        linecache.checkcache(function.__code__.co_filename)
        if function.__code__.co_filename == "<string>":  # Python 3.13 would give the text of `python -c`
            raise OSError
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelError(
            f"the source of `{function.__name__}` cannot be read: write the kernel in a file or a notebook cell, "
            "not in a string given to exec",
            function.__code__.co_firstlineno,
        ) from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise KernelError("a kernel is a plain function written with `def`; leave `async` out", first)
    ast.increment_lineno(tree, first - 1)
    return Source(text, function.__code__.co_filename, first, tree)


def argument_names(source: Source) -> list[str]:
    """The names of a kernel's arguments; raises KernelError if they are not plain positional ones."""
    given = source.tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        raise KernelError(
            "a kernel takes plain positional arguments, without `*`, `**` or defaults; name each one",
            source.tree.lineno,
        )
    return [a.arg for a in (*given.posonlyargs, *given.args)]


def captured(function: FunctionType) -> dict[str, Any]:
    """The values that a function's free names have now: closure cells over globals."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def translate(function: FunctionType, argument_types: tuple, watch: bool = False) -> Program:
    """Translates a kernel for arguments of these types.

    `watch` adds code that reports every variable after every statement. Raises KernelError for what the
    kernel language does not hold.
    """
    program = Program(watch=watch)
    program.blocking = _blocks(function, set())
    compiled = _FunctionTranslator(program, function, argument_types, is_kernel=True).run()
    program.kernel = compiled[0]
    return program


def _unwrap(thing):
    """The Python function behind what `cuda.jit` returned, or None."""
    function = getattr(thing, "py_func", None)
    return function if isinstance(function, FunctionType) else None


def _blocks(function, seen) -> bool:
    """Does the function, or a device function that it calls, wait for other warps?"""
    if function in seen:
        return False
    seen.add(function)
    names = captured(function)
    tree = read_source(function).tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "syncthreads":
                return True
            if isinstance(node.func, ast.Name):
                callee = _unwrap(names.get(node.func.id))
                if callee is not None and _blocks(callee, seen):
                    return True
        if isinstance(node, ast.While) and _is_spin(node):
            return True
    return False


def _is_spin(loop: ast.While) -> bool:
    """Does the loop wait for another thread: by an atomic, or by a bare reload in its condition?"""
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "atomic":
            return True
    idle = all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)) for s in loop.body
    )
    return idle and any(isinstance(n, ast.Subscript) for n in ast.walk(loop.test))


def _never_ends(loop: ast.While) -> bool:
    """Does nothing in the loop change its condition, or leave it?"""
    if _is_spin(loop) or _has([loop.test], ast.Call, ast.Subscript) or _has(loop.body, ast.Return):
        return False
    names = {n.id for n in ast.walk(loop.test) if isinstance(n, ast.Name)}
    changed = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return not names & changed and not _breaks(loop.body)


def _breaks(body) -> bool:
    """Do these statements hold a `break` of the loop around them?"""
    for node in body:
        if isinstance(node, ast.Break) or (isinstance(node, ast.If) and (_breaks(node.body) or _breaks(node.orelse))):
            return True
    return False


def _makes_text(node) -> bool:
    """Does the expression put text together: an f-string, `%`, `+`, `format` or `str`?"""
    if isinstance(node, ast.BinOp):
        return (
            _makes_text(node.left)
            or _makes_text(node.right)
            or any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right))
        )
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        return name in ("format", "str", "repr", "join")
    return isinstance(node, ast.JoinedStr)


def _has(nodes, *kinds) -> bool:
    return any(isinstance(n, kinds) for node in nodes for n in ast.walk(node))


def _jumps(nodes) -> bool:
    """Can lanes leave these statements early (a break or continue of an inner loop does not count)?"""
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, (ast.For, ast.While)):
            if _has([node], ast.Return):
                return True
        elif isinstance(node, ast.If) and (_jumps(node.body) or _jumps(node.orelse)):
            return True
    return False


class _Homes(ast.NodeVisitor):
    """Finds each variable's home: the innermost region that holds all its uses, its first a plain store."""

    def __init__(self, tree):
        self.path = ["function"]
        self.uses: dict[str, list] = {}
        self.depth = 0
        for argument in (*tree.args.posonlyargs, *tree.args.args):
            self.uses[argument.arg] = [(tuple(self.path), True)]
        for statement in tree.body:
            self.visit(statement)

    def home(self, name):
        paths = self.uses[name]
        shared = list(paths[0][0])
        for path, _ in paths[1:]:
            while tuple(shared) != path[: len(shared)]:
                shared.pop()
        while len(shared) > 1:
            first, stores = paths[0]
            if not shared[-1].startswith("loop") or (stores and first == tuple(shared)):
                break
            shared.pop()
        return shared[-1]

    def _within(self, region, nodes):
        self.path.append(region)
        for node in nodes:
            self.visit(node)
        self.path.pop()

    def visit_Name(self, node):
        self.uses.setdefault(node.id, []).append((tuple(self.path), isinstance(node.ctx, ast.Store)))

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.uses.setdefault(node.target.id, []).append((tuple(self.path), False))
        self.visit(node.value)
        self.visit(node.target)

    def visit_If(self, node):
        self.visit(node.test)
        self._within(region_of(node, "body"), node.body)
        self._within(region_of(node, "orelse"), node.orelse)

    def visit_For(self, node):
        self.visit(node.iter)
        self._within(region_of(node, "body"), [node.target, *node.body])

    def visit_While(self, node):
        self._within(region_of(node, "body"), [node.test, *node.body])


def region_of(node, part):
    kind = "loop" if isinstance(node, (ast.For, ast.While)) else "branch"
    return f"{kind}{node.lineno}_{node.col_offset}_{part}"


REFUSED = {
    ast.MatMult: (
        "`@` multiplies whole matrices, and a thread computes one number: write a loop over k that adds the products"
    ),
    ast.ListComp: "a list comprehension builds a list, which a GPU thread cannot; write a `for` loop over `range`",
    ast.GeneratorExp: "a generator expression does not run on a GPU; write a `for` loop over `range`",
    ast.DictComp: "a dict does not exist on a GPU; use an array",
    ast.SetComp: "a set does not exist on a GPU; use an array",
    ast.List: "a list does not exist on a GPU; use `cuda.local.array(length, float32)` for a thread's own values",
    ast.Dict: "a dict does not exist on a GPU; use an array",
    ast.Set: "a set does not exist on a GPU; use an array",
    ast.Lambda: "a lambda does not run in a kernel; write a function with `@cuda.jit(device=True)`",
    ast.JoinedStr: "an f-string does not work in a kernel; use `print('x', x)` with the values as they are",
    ast.Slice: "a slice takes many elements at once, and a GPU thread handles one: write the index or a loop",
    ast.Starred: "`*` unpacking does not work in a kernel; name each value",
    ast.NamedExpr: "`:=` does not work in a kernel; assign on a line of its own",
    ast.Yield: "a kernel cannot yield; write its result into an output array",
    ast.YieldFrom: "a kernel cannot yield; write its result into an output array",
    ast.Await: "a kernel cannot await anything",
    ast.Import: "import outside the kernel, at the top of the file or cell",
    ast.ImportFrom: "import outside the kernel, at the top of the file or cell",
    ast.Try: "exceptions do not exist on a GPU; test with `if` before the access",
    ast.Raise: "a GPU thread cannot raise; write a flag into an array and look at it after the launch",
    ast.Assert: "an assert does nothing in a kernel; write a flag into an array, or test the result outside",
    ast.With: "`with` does not work in a kernel",
    ast.Global: "a kernel cannot change a global; pass an array and write into it",
    ast.Nonlocal: "a kernel cannot change an outer variable; pass an array and write into it",
    ast.Delete: "`del` does nothing useful in a kernel; leave it out",
    ast.FunctionDef: "a function inside a kernel does not work; write it outside with `@cuda.jit(device=True)`",
    ast.ClassDef: "a class does not work in a kernel",
    ast.Match: "`match` does not work in a kernel; use `if` and `elif`",
}

ARRAY_METHODS = {
    "append": "an array cannot grow on a GPU: make it large enough before the launch and write `{name}[i] = ...`",
    "sum": "`{name}.sum()` would make every thread add the whole array; add the elements in a loop",
    "copy": "a thread cannot copy an array; copy the elements it needs, one by one",
    "dot": "`{name}.dot` is not available to a thread; write the loop over k that adds the products",
    "T": "`{name}.T` does not exist in a kernel: swap the indices instead, `{name}[col, row]` for `{name}.T[row, col]`",
    "astype": "`{name}.astype` does not exist in a kernel: convert one number with `float32(...)` or `int32(...)`",
}


class _FunctionTranslator:
    """Translates one function, for one tuple of argument types."""

    def __init__(self, program, function, argument_types, is_kernel):
        self.program = program
        self.function = function
        self.source = read_source(function)
        self.argument_types = argument_types
        self.is_kernel = is_kernel
        self.parameters = argument_names(self.source)
        self.names = captured(function)
        self.homes = _Homes(self.source.tree)
        self.env: dict[str, Any] = {}
        self.lines: list[str] = []
        self.indent = 1
        self.counter = 0
        self.masks = {"function": "m0"}
        self.region = "function"
        self.loops: list[dict] = []
        self.flops: dict[tuple[str, str], int] = {}
        self.return_types: list = []
        self.local_types: dict[str, Any] = {}
        self.reachable = True
        self.assigned: set[str] = set()
        self.unsure: set[str] = set()

    # --- output ---

    def emit(self, text):
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, header):
        self.emit(header)
        self.indent += 1
        mark = len(self.lines)
        yield
        if len(self.lines) == mark:
            self.emit("pass")
        self.indent -= 1

    def name(self, prefix="t"):
        self.counter += 1
        return f"{prefix}{self.counter}"

    def temp(self, code, kind, static=MISSING):
        name = self.name()
        self.emit(f"{name} = {code}")
        return Value(name, kind, static)

    def constant(self, value) -> str:
        namespace = self.program.namespace
        key = f"K{len(namespace)}"
        namespace[key] = value
        return key

    def dtype(self, kind) -> str:
        dtype = lanes.dtype_of(kind)
        key = f"D_{dtype.name}"
        self.program.namespace[key] = dtype
        return key

    @property
    def mask(self):
        return self.masks[self.region]

    def fail(self, node, message):
        raise KernelError(message, getattr(node, "lineno", self.source.first_line))

    def written(self, node) -> str:
        return ast.unparse(node)

    # --- the whole function ---

    def run(self):
        tree = self.source.tree
        arguments = self.parameters
        if len(arguments) != len(self.argument_types):
            self.fail(
                tree,
                f"`{tree.name}` takes {len(arguments)} arguments ({', '.join(arguments)}) "
                f"but was given {len(self.argument_types)}",
            )
        self.env = dict(zip(arguments, self.argument_types))
        self.assigned = set(arguments)
        self.statements(tree.body)
        self.flush_flops()
        sure = tuple(f"a_{name} =" for name in self.local_types.keys() - self.unsure)
        body = [line for line in self.lines if not line.lstrip().startswith(sure)]
        kind = self.result_type()
        head = [f"def {tree.name}(w, m0{''.join(', v_' + a for a in arguments)}):"]
        for name, local in self.local_types.items():
            if name not in arguments:
                zero = f"{self.dtype(local)}.type(0)" if isinstance(local, types.Type) else "None"
                head.append(f"    v_{name} = {zero}")
        head += [f"    a_{name} = False" for name in sorted(self.unsure)]
        head.append("    gone = False")
        if not self.is_kernel:
            head.append("    result = None")
        tail = [] if self.is_kernel else ["    return result"]
        if self.program.blocking:
            tail = ["    if False:", "        yield", *tail]
        text = "\n".join([*head, *body, *tail]) + "\n"
        self.program.text += text + "\n"
        from labkit.simulator import memory

        scope = self.program.namespace
        scope.update(np=np, **{n: getattr(lanes, n) for n in _LANE_HELPERS})
        scope.update({n: getattr(memory, n) for n in _MEMORY_HELPERS})
        exec(compile(text, f"<lockstep {tree.name}>", "exec"), scope)
        return scope[tree.name], kind

    def result_type(self):
        kinds = self.return_types
        if not kinds:
            return types.none
        first = kinds[0]
        for kind in kinds[1:]:
            if kind != first:
                first = self.unified(first, kind, self.source.tree, "the returned value")
        return first

    # --- statements ---

    def statements(self, body):
        for position, node in enumerate(body):
            self.statement(node)
            self.flush_flops()
            rest = body[position + 1 :]
            if not self.reachable:
                return
            if rest and _jumps([node]):
                with self.block(f"if {self.mask} is not False:"):
                    self.statements(rest)
                    self.flush_flops()
                return

    def statement(self, node):
        handler = getattr(self, f"do_{type(node).__name__}", None)
        if handler is None:
            self.fail(node, REFUSED.get(type(node), f"`{type(node).__name__}` does not work in a kernel"))
        handler(node)
        if self.program.watch and not isinstance(
            node, (ast.For, ast.While, ast.If, ast.Return, ast.Break, ast.Continue)
        ):
            self.emit_watch(node.lineno)

    def emit_watch(self, line):
        shown = {n: k for n, k in self.env.items() if isinstance(k, types.Type)}
        values = ", ".join(f"{n!r}: {self.held(n)}" for n in shown)
        self.emit(f"w.chunk.launch.watch(w, {self.mask}, {line}, {{{values}}})")

    def do_Pass(self, node):
        pass

    def do_Expr(self, node):
        value = node.value
        if isinstance(value, ast.Constant) and (isinstance(value.value, str) or value.value is ...):
            return
        if isinstance(value, ast.Call):
            self.expression_call(value, result_used=False)
            return
        if isinstance(value, ast.Compare):
            self.fail(node, f"`{self.written(value)}` compares and throws the answer away; did you mean `=`?")
        if isinstance(value, ast.Attribute):
            self.fail(
                node, f"`{self.written(value)}` does nothing: a call needs parentheses, `{self.written(value)}()`"
            )
        if isinstance(value, (ast.BinOp, ast.UnaryOp)):
            self.fail(
                node,
                f"`{self.written(value)}` computes a value and throws it away; store it, for instance `out[i] = ...`",
            )
        self.expression(value)

    def do_Assign(self, node):
        value = self.expression(node.value)
        for target in node.targets:
            self.assign(target, value, node)

    def do_AnnAssign(self, node):
        if node.value is not None:
            self.assign(node.target, self.expression(node.value), node)

    def do_AugAssign(self, node):
        if isinstance(node.op, ast.MatMult):
            self.fail(node, REFUSED[ast.MatMult])
        target = node.target
        if isinstance(target, ast.Name):
            current = self.expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            result = self.binary(node, current, self.expression(node.value), type(node.op).__name__)
            self.assign(target, result, node)
            return
        if not isinstance(target, ast.Subscript):
            self.fail(node, "only a variable or an array element can be updated in place")
        array, index = self.element(target)
        current = self.load(target, array, index)
        result = self.binary(node, current, self.expression(node.value), type(node.op).__name__)
        self.store(target, array, index, result)

    def assign(self, target, value, node):
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, node)
        elif isinstance(target, ast.Subscript):
            array, index = self.element(target)
            self.store(target, array, index, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value.type, Tuple):
                self.fail(
                    node, f"`{self.written(node.value)}` is a single value and cannot be unpacked into several names"
                )
            if len(value.type.items) != len(target.elts):
                self.fail(
                    node,
                    f"there are {len(target.elts)} names on the left, but {len(value.type.items)} on the right of `=`; "
                    "make the numbers equal",
                )
            whole = self.temp(value.code, value.type)
            for i, (element, kind) in enumerate(zip(target.elts, value.type.items)):
                self.assign(element, Value(f"{whole.code}[{i}]", kind), node)
        else:
            self.fail(node, f"`{self.written(target)}` cannot be assigned to in a kernel")

    def assign_name(self, name, value, node):
        if value.type is types.none:
            self.fail(node, f"the right-hand side has no value, so `{name}` cannot hold it")
        kind = value.type
        if not isinstance(kind, (types.Type, Array, Tuple)):
            self.fail(
                node,
                f"`{self.written(getattr(node, 'value', node))}` is {describe(kind)}, but a kernel variable "
                "holds a number or an array",
            )
        self.env[name] = kind
        if self.is_kernel and name in self.parameters:
            self.program.rebound.setdefault(name, node.lineno)
        if name not in self.assigned:
            self.assigned.add(name)
            self.emit(f"a_{name} = union(a_{name}, {self.mask})")
        known = self.local_types.setdefault(name, kind)
        if isinstance(known, types.Type) != isinstance(kind, types.Type):
            self.local_types[name] = Tuple(())
        self.note_type(name, kind)
        home = self.masks.get(self.homes.home(name), "m0")
        if home == self.mask or not isinstance(kind, (types.Type, Tuple)):
            self.emit(f"v_{name} = {value.code}")
            return
        new = value.code if value.code.isidentifier() else self.temp(value.code, kind).code
        self.emit(f"v_{name} = {new} if {self.mask} is {home} else select({self.mask}, {new}, v_{name})")

    def note_type(self, name, kind):
        """Keeps the types that a variable has where it is assigned or read: those of numba's SSA versions."""
        if isinstance(kind, types.Type):
            self.program.variables.setdefault(name, set()).add(kind)

    def do_Return(self, node):
        has_value = node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        if self.is_kernel:
            if has_value:
                self.fail(node, "a kernel returns nothing: write the result into an output array, `out[i] = ...`")
            self.emit(f"w.leave({self.mask})")
        elif has_value:
            value = self.expression(node.value)
            self.flush_flops()
            self.return_types.append(value.type)
            self.emit(f"result = select({self.mask}, {value.code}, result)")
        self.emit(f"gone = union(gone, {self.mask})")
        self.emit(f"{self.mask} = False")
        self.reachable = False

    def do_Break(self, node):
        loop = self.loops[-1]
        loop["break_envs"].append(dict(self.env))
        self.emit(f"{loop['broken']} = union({loop['broken']}, {self.mask})")
        self.emit(f"{self.mask} = False")
        self.reachable = False

    def do_Continue(self, node):
        self.loops[-1]["continue_envs"].append(dict(self.env))
        self.emit(f"{self.mask} = False")
        self.reachable = False

    @contextmanager
    def inside(self, region, mask):
        outer = self.region
        self.region = region
        self.masks[region] = mask
        yield
        self.flush_flops()
        self.region = outer

    def do_If(self, node):
        test = self.condition(node.test)
        self.flush_flops()
        if test.static is not MISSING:
            # numba prunes branches on constants; the dead one is not typed
            chosen = node.body if test.static else node.orelse
            part = "body" if test.static else "orelse"
            outer = self.mask
            inner = self.name("m")
            self.emit(f"{inner} = {outer}")
            with self.inside(region_of(node, part), inner):
                self.statements(chosen)
            if _jumps(chosen):
                self.emit(f"{outer} = {inner}")
            return
        outer = self.mask
        yes, no = self.name("m"), self.name("m")
        self.emit(f"{yes}, {no} = split({outer}, {test.code})")
        self.guard_fork([*node.body, *node.orelse], yes, outer)
        before, assigned = dict(self.env), set(self.assigned)
        ends, sure = [], []
        for part, mask, body in (("body", yes, node.body), ("orelse", no, node.orelse)):
            self.env, self.assigned, self.reachable = dict(before), set(assigned), True
            if body:
                with self.block(f"if {mask} is not False:"):
                    if self.program.watch:
                        self.emit_watch_as(mask, node.lineno)
                    with self.inside(region_of(node, part), mask):
                        self.statements(body)
            if self.reachable:
                ends.append(self.env)
                sure.append(self.assigned)
        self.reachable = bool(ends)
        self.env = self.merge(ends, node) if ends else before
        self.assigned = set.intersection(*sure) if sure else assigned
        if _jumps(node.body) or _jumps(node.orelse):
            self.emit(f"{outer} = union({yes}, {no})")

    def emit_watch_as(self, mask, line):
        kept, self.masks[self.region] = self.mask, mask
        self.emit_watch(line)
        self.masks[self.region] = kept

    def guard_fork(self, body, taken, outer):
        """Where warps would part ways around a wait, ask the scheduler to run them as separate sets."""
        spins = any(isinstance(n, ast.While) and _is_spin(n) for s in body for n in ast.walk(s))
        if spins or self.waits(body):
            self.emit(f"w.chunk.guard(w, {taken}, {outer}, {spins})")

    def waits(self, body):
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    if isinstance(node.func, ast.Attribute) and node.func.attr == "syncthreads":
                        return True
                    if isinstance(node.func, ast.Name):
                        callee = _unwrap(self.names.get(node.func.id))
                        if callee is not None and _blocks(callee, set()):
                            return True
        return False

    def merge(self, envs, node):
        """The environment after several paths meet."""
        merged = dict(envs[0])
        for env in envs[1:]:
            for name, kind in env.items():
                if name not in merged:
                    merged[name] = kind
                elif merged[name] != kind:
                    if name in self.program.rebound and isinstance(
                        self.argument_types[self.parameters.index(name)], Array
                    ):
                        raise KernelError(
                            f"`{name} = ...` gives the name `{name}` a new meaning and leaves the array as it "
                            "was; write into "
                            f"an element, `{name}[i] = ...`",
                            self.program.rebound[name],
                        )
                    merged[name] = self.unified(merged[name], kind, node, f"`{name}`")
        return merged

    def unified(self, first, second, node, what):
        if isinstance(first, types.Type) and isinstance(second, types.Type):
            kind = lanes.unify(first, second)
            if kind is not None:
                return kind
        if isinstance(first, Tuple) and isinstance(second, Tuple) and len(first.items) == len(second.items):
            return Tuple(tuple(self.unified(a, b, node, what) for a, b in zip(first.items, second.items)))
        self.fail(
            node, f"{what} is {describe(first)} on one path and {describe(second)} on another; make them the same"
        )

    def loop(self, node, header, enter, trips=None):
        """Walks a loop body until the types at its head settle; `header` opens the Python loop.

        `trips` names the variable that counts a `while` loop's trips.
        """
        if node.orelse:
            self.fail(node.orelse[0], "a loop's `else` does not work in a kernel; set a flag before `break`")
        outer, region = self.mask, region_of(node, "body")
        looping, inner, broken = self.name("l"), self.name("m"), self.name("b")
        self.emit(f"{looping} = {outer}")
        self.emit(f"{broken} = False")
        head, assigned = dict(self.env), set(self.assigned)
        for _ in range(8):
            mark = len(self.lines)
            self.assigned = set(assigned)
            variables = {name: set(kinds) for name, kinds in self.program.variables.items()}
            entry, self.env = dict(self.env), dict(head)
            loop = {"broken": broken, "break_envs": [], "continue_envs": []}
            self.loops.append(loop)
            with self.block(header):
                with self.inside(region, inner):
                    enter(looping, inner)
                    self.guard_fork([node], inner, outer)
                    loop["head"] = dict(self.env) if isinstance(node, ast.While) else None
                    self.statements(node.body)
                ends = [*[self.env] * self.reachable, *loop["continue_envs"]]
                self.env = self.merge(ends, node) if ends else dict(head)
                self.reachable = True
                back = self.env
                if _has(node.body, ast.Break, ast.Return):
                    self.emit(f"{looping} = minus(minus({looping}, {broken}), gone)")
                    self.emit(f"if {looping} is False: break")
                if isinstance(node, ast.While):
                    if _is_spin(node):
                        self.emit(f"yield ({node.lineno}, {looping})")
                    else:
                        self.emit(f"{trips} = w.chunk.launch.tick({trips}, {node.lineno})")
            self.loops.pop()
            settled = dict(head)
            for name, kind in back.items():
                if name in settled and settled[name] != kind:
                    settled[name] = self.unified(settled[name], kind, node, f"`{name}`")
            if settled == head:
                break
            head, self.env = settled, entry
            del self.lines[mark:]
            self.program.variables = variables
        else:
            self.fail(node, "the types of this loop's variables do not settle; give each variable one type")
        self.env = self.merge([{**back, **head}, back, *loop["break_envs"]], node)
        self.assigned = assigned
        if _has(node.body, ast.Return):
            self.emit(f"{outer} = minus({outer}, gone)")

    def do_For(self, node):
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            self.fail(
                node, "a `for` loop in a kernel runs over `range(...)`: write `for k in range(x.size)` and use `x[k]`"
            )
        if not isinstance(node.target, ast.Name):
            self.fail(node, "a loop in a kernel counts with one variable: `for k in range(...)`")
        if not 1 <= len(call.args) <= 3 or call.keywords:
            self.fail(node, "`range` takes one to three numbers")
        bounds = [self.scalar(a, "a bound of `range`") for a in call.args]
        for bound, argument in zip(bounds, call.args):
            if not isinstance(bound.type, types.Integer):
                self.fail(
                    argument,
                    f"`range` needs whole numbers, and `{self.written(argument)}` is {describe(bound.type)}; "
                    "use `//` instead of `/`",
                )
        kind = lanes.resolve(range, tuple(b.type for b in bounds))[0].dtype
        if len(bounds) == 3 and bounds[2].static == 0:
            self.fail(node, "`range` with a step of 0 never ends; use another step")
        codes = [self.converted(b, kind) for b in bounds]
        zero, one = self.constant(lanes.dtype_of(kind).type(0)), self.constant(lanes.dtype_of(kind).type(1))
        low, high, step = {1: [zero, *codes, one], 2: [*codes, one], 3: codes}[len(codes)]
        span, value, lanes_left = self.name("r"), self.name(), self.name("c")
        self.flush_flops()
        self.emit(f"{span} = lane_range({self.mask}, {low}, {high}, {step})")

        def enter(looping, inner):
            self.emit(f"{inner} = {looping} if {lanes_left} is None else both({looping}, {lanes_left})")
            self.emit(f"if {inner} is False: break")
            self.assign_name(node.target.id, Value(value, kind), node)
            if self.program.watch:
                self.emit_watch(node.lineno)

        self.loop(node, f"for {value}, {lanes_left} in {span}:", enter)

    def do_While(self, node):
        self.program.spins |= _is_spin(node)
        if _never_ends(node):
            self.fail(
                node,
                f"`while {self.written(node.test)}` never ends: nothing inside the loop changes its condition or "
                "leaves it; "
                "change a variable of the condition, or `break`",
            )
        trips = self.name("n")
        self.emit(f"{trips} = 0")

        def enter(looping, inner):
            self.emit(f"{inner} = {looping}")
            test = self.condition(node.test)
            self.flush_flops()
            self.emit(f"{looping} = {inner} = both({looping}, {test.code})")
            self.emit(f"if {inner} is False: break")
            if self.program.watch:
                self.emit_watch(node.lineno)

        self.loop(node, "while True:", enter, trips)

    # --- expressions ---

    def expression(self, node) -> Value:
        handler = getattr(self, f"of_{type(node).__name__}", None)
        if handler is None:
            self.fail(node, REFUSED.get(type(node), f"`{self.written(node)}` does not work in a kernel"))
        return handler(node)

    def scalar(self, node, what) -> Value:
        value = self.expression(node)
        if not isinstance(value.type, types.Type) or value.type is types.none:
            text = self.written(node)
            if isinstance(value.type, Array):
                self.fail(
                    node,
                    f"`{text}` is a whole array where {what} needs one number; pick an element, `{text}[...]`",
                )
            self.fail(node, f"`{text}` is {describe(value.type)}, but {what} needs a number")
        return value

    def converted(self, value, kind) -> str:
        if value.type == kind:
            return value.code
        if value.static is not MISSING:
            return self.constant(lanes.dtype_of(kind).type(value.static))
        return f"cast({value.code}, {self.dtype(kind)})"

    def known(self, value, node) -> Value:
        """A Python value frozen into the kernel: a literal, a global, a closure variable."""
        if isinstance(value, (bool, np.bool_)):
            return Value(self.constant(np.bool_(value)), types.boolean, bool(value))
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                self.fail(node, f"the number {value} does not fit into 64 bits")
            kind = types.int64 if value < 2**63 else types.uint64
            return Value(self.constant(lanes.dtype_of(kind).type(value)), kind, value)
        if isinstance(value, float) and not isinstance(value, np.floating):
            return Value(self.constant(np.float64(value)), types.float64, value)
        if isinstance(value, (np.integer, np.floating)):
            return Value(self.constant(value), lanes.type_of(value.dtype), value)
        if isinstance(value, tuple):
            items = [self.known(v, node) for v in value]
            code = f"({', '.join(i.code for i in items)}{',' if len(items) == 1 else ''})"
            return Value(code, Tuple(tuple(i.type for i in items)), value)
        if isinstance(value, str):
            return Value(repr(value), str, value)
        if value is None or value is ...:
            self.fail(node, f"`{value}` has no meaning inside a kernel; write the number that belongs here")
        if isinstance(value, np.ndarray):
            self.fail(node, f"`{self.written(node)}` is a global array; pass it to the kernel as an argument")
        if isinstance(value, complex):
            self.fail(node, "complex numbers are not supported; keep real and imaginary parts apart")
        return None

    def of_Constant(self, node):
        return self.known(node.value, node)

    def of_Name(self, node):
        name = node.id
        if name in self.env:
            if name not in self.assigned:
                self.unsure.add(name)
                self.emit(f"w.chunk.launch.check_assigned(w, minus({self.mask}, a_{name}), {name!r}, {node.lineno})")
            self.note_type(name, self.env[name])
            return Value(self.held(name), self.env[name])
        if name in self.homes.uses and any(stores for _, stores in self.homes.uses[name]):
            self.fail(
                node,
                f"`{name}` is read before anything was assigned to it; give it a value first, such as `{name} = "
                "float32(0)`",
            )
        value = self.global_value(node)
        if value is None:
            self.fail(node, f"`{name}` cannot be used as a value in a kernel")
        return value

    def held(self, name) -> str:
        """What a variable holds, with its type on this path: lanes on another path may hold a wider one."""
        stores = sum(stores for _, stores in self.homes.uses[name])
        return self.retyped(f"v_{name}", self.env[name]) if stores > 1 else f"v_{name}"

    def retyped(self, code, kind) -> str:
        if isinstance(kind, Tuple):
            return f"({''.join(self.retyped(f'{code}[{i}]', k) + ', ' for i, k in enumerate(kind.items))})"
        return f"cast({code}, {self.dtype(kind)})" if isinstance(kind, types.Number | types.Boolean) else code

    def global_value(self, node):
        name = node.id
        if name not in self.names:
            if name in BUILTINS or name in dir(__builtins__):
                self.fail(node, f"`{name}` is not part of the kernel language here")
            self.fail(
                node,
                f"the name `{name}` is not defined{nearest(name)}; assign it before use, or pass it as an argument",
            )
        value = self.names[name]
        known = self.known(value, node)
        if known is not None:
            self.program.frozen[self.function, name] = value
        return known

    def dotted(self, node) -> str | None:
        """The name in the kernel language that an expression stands for, such as `cuda.shared.array`."""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        if not isinstance(node, ast.Name) or node.id in self.env:
            return None
        value = self.names.get(node.id, MISSING)
        if value is MISSING:
            return node.id if node.id in BUILTINS else None
        if isinstance(value, ModuleType):
            return MODULES.get(value.__name__)
        if isinstance(value, types.Type):
            return f"numba.{'boolean' if value == types.boolean else value.name}"
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{np.dtype(value).name}" if value is not np.bool_ else "np.bool_"
        module = getattr(value, "__module__", None)
        if module in MODULES and isinstance(getattr(value, "__name__", None), str):
            return f"{MODULES[module]}.{value.__name__}"
        if value in (min, max, abs, round, len, range, print, float, int, bool, pow):
            return value.__name__
        return None

    def of_Attribute(self, node):
        path = self.dotted(node)
        if path in POSITIONS:
            kind, code = POSITIONS[path]
            return Value(code, kind)
        if path in CONSTANTS:
            return self.known(CONSTANTS[path], node)
        if path is not None:
            if path in CALLS or path in FUNCTIONS:
                self.fail(node, f"`{self.written(node)}` is a function: call it with parentheses")
            if path in PREFIXES and path.startswith("cuda."):
                self.fail(node, f"`{self.written(node)}` is not complete; write for instance `{self.written(node)}.x`")
            self.fail(node, why_unknown(path, self.written(node)))
        if isinstance(node.value, ast.Name) and isinstance(self.names.get(node.value.id), ModuleType):
            self.fail(
                node,
                f"the module `{node.value.id}` does not work in a kernel; compute `{self.written(node)}` outside "
                "and pass it as an argument",
            )
        base = self.expression(node.value)
        if isinstance(base.type, Array):
            rank = base.type.ndim
            if node.attr == "shape":
                return Value(f"{base.code}.shape_values", Tuple((types.int64,) * rank))
            if node.attr == "size":
                return Value(f"{base.code}.size_value", types.int64)
            if node.attr == "ndim":
                return self.known(rank, node)
            name = self.written(node.value)
            if node.attr in ARRAY_METHODS:
                self.fail(node, ARRAY_METHODS[node.attr].format(name=name))
            self.fail(
                node, f"an array in a kernel has `shape`, `size` and `ndim`, not `{node.attr}`; loop over its elements"
            )
        if node.attr in ("astype", "item"):
            self.fail(
                node,
                f"`{self.written(node.value)}` is a number already: convert it with `float32(...)` or `int32(...)`",
            )
        self.fail(node, f"`{self.written(node.value)}` is {describe(base.type)} and has no `{node.attr}` in a kernel")

    def of_Tuple(self, node):
        items = [self.expression(e) for e in node.elts]
        code = f"({', '.join(i.code for i in items)}{',' if len(items) == 1 else ''})"
        static = tuple(i.static for i in items) if all(i.static is not MISSING for i in items) else MISSING
        return Value(code, Tuple(tuple(i.type for i in items)), static)

    def binary(self, node, left, right, op):
        function, sign = lanes.BINARY[op]
        for side in (left, right):
            if isinstance(side.type, Array):
                name = side.code.removeprefix("v_")
                self.fail(
                    node,
                    f"`{sign}` takes numbers, and `{name}` is a whole array: a thread works on one element, "
                    f"`{element_of(name, side.type)}`",
                )
            if not isinstance(side.type, types.Type):
                self.fail(node, f"`{sign}` needs numbers, and one side is {describe(side.type)}")
        typed = (left.type, right.type)
        if op == "Pow" and isinstance(right.static, int) and not isinstance(right.static, bool):
            typed = (left.type, types.literal(right.static))
        resolved = lanes.resolve(function, typed)
        if resolved is None:
            cure = (
                "; a power is written `**`"
                if sign == "^"
                else "; convert one side first, for instance with `int32(...)`"
            )
            self.fail(node, f"`{sign}` does not work between {describe(left.type)} and {describe(right.type)}{cure}")
        result, (a, b) = resolved
        if op == "Pow" and isinstance(a, types.Float):
            b = a
        if isinstance(result, types.Integer):  # NumPy would make float64 of int64 and uint64
            a = b = result
        if left.static is not MISSING and right.static is not MISSING and op != "Pow":
            with np.errstate(all="ignore"):
                folded = function(lanes.dtype_of(a).type(left.static), lanes.dtype_of(b).type(right.static))
            return Value(self.constant(folded), result, folded)
        if isinstance(result, types.Float):
            if op in ("Add", "Sub", "Mult", "Div") or op == "Pow" and right.static == 2:
                self.count_flops(result, 1)
            self.note_float64(node, left, right, result, sign)
        a, b = self.converted(left, a), self.converted(right, b)
        if op == "Pow" and isinstance(result, types.Integer):
            return Value(f"integer_power({a}, {b})", result)
        return Value(f"({a} {sign} {b})", result)

    def note_float64(self, node, left, right, result, sign):
        """float32 meets something wider: the whole expression becomes float64, at a fraction of the speed."""
        if result != types.float64 or types.float32 not in (left.type, right.type):
            return
        other = right if left.type == types.float32 else left
        if other.static is not MISSING:
            why = f"{other.static} is {other.type}; write `float32({other.static})`"
        elif isinstance(other.type, types.Integer):
            why = f"the other side is {other.type}; convert it with `float32(...)`"
        else:
            why = "the other side is float64; start it from `float32(0)`, or convert it with `float32(...)`"
        key = (node.lineno, "float64")
        self.program.advice.setdefault(
            key,
            Finding(
                "float64",
                "advice",
                f"Line {node.lineno}: `{sign}` here computes in float64, which is 2 to 64 times slower than "
                f"float32 on a GPU: {why}.",
                node.lineno,
                node.col_offset,
            ),
        )

    def of_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.fail(node, REFUSED[ast.MatMult])
        left = self.expression(node.left)
        return self.binary(node, left, self.expression(node.right), type(node.op).__name__)

    def of_UnaryOp(self, node):
        value = self.scalar(node.operand, "this sign")
        if isinstance(node.op, ast.Not):
            if value.static is not MISSING:
                return self.known(not value.static, node)
            return Value(f"logical_not({value.code})", types.boolean)
        function, sign = {
            ast.USub: (operator.neg, "-"),
            ast.UAdd: (operator.pos, "+"),
            ast.Invert: (operator.invert, "~"),
        }[type(node.op)]
        if isinstance(value.static, int | float) and not isinstance(value.static, np.generic):
            return self.known(function(value.static), node)
        resolved = lanes.resolve(function, (value.type,))
        if resolved is None:
            self.fail(node, f"`{sign}` does not work on {describe(value.type)}")
        result, (kind,) = resolved
        if kind == types.boolean:  # NumPy has no signs for it
            kind = result
        if value.static is not MISSING:
            with np.errstate(all="ignore"):
                folded = function(lanes.dtype_of(kind).type(value.static)).astype(lanes.dtype_of(result))
            return Value(self.constant(folded), result, folded)
        signed = Value(f"({sign}{self.converted(value, kind)})", kind)  # numba widens after the sign
        return Value(self.converted(signed, result), result)

    def of_Compare(self, node):
        parts = []
        if any(type(op).__name__ not in lanes.COMPARE for op in node.ops):
            self.fail(node, "`in` and `is` do not work in a kernel; compare numbers with `==` or `<`")
        left = self.scalar(node.left, "a comparison")
        for op, right_node in zip(node.ops, node.comparators):
            function, sign = lanes.COMPARE[type(op).__name__]
            right = self.scalar(right_node, "a comparison")
            fixed = left.static is not MISSING and right.static is not MISSING
            # numba prunes by literals and globals, and takes `float32(0)` and `math.pi` as computed
            if fixed and len(node.ops) == 1 and not _has([node], ast.Call, ast.Attribute):
                return self.known(bool(function(left.static, right.static)), node)
            if isinstance(left.type, types.Float) != isinstance(right.type, types.Float):
                _, (a, b) = lanes.resolve(function, (left.type, right.type))
            else:
                a, b = left.type, right.type
            parts.append(f"({self.converted(left, a)} {sign} {self.converted(right, b)})")
            left = right
        return Value(f"({' & '.join(parts)})", types.boolean)

    def condition(self, node) -> Value:
        """An expression used as true or false."""
        value = self.scalar(node, "a condition")
        if value.type == types.boolean:
            return value
        if value.static is not MISSING:
            return self.known(bool(value.static), node)
        return Value(f"truth({value.code})", types.boolean)

    def of_BoolOp(self, node):
        is_and = isinstance(node.op, ast.And)
        result = self.condition(node.values[0])
        for operand in node.values[1:]:
            if result.static is not MISSING:
                if bool(result.static) != is_and:
                    return result
                result = self.condition(operand)
                continue
            sign = "&" if is_and else "|"
            if not _has([operand], ast.Subscript, ast.Call):
                result = Value(f"({result.code} {sign} {self.condition(operand).code})", types.boolean)
                continue
            first = self.temp(result.code, types.boolean)
            yes, no = self.name("m"), self.name("m")
            self.flush_flops()
            self.emit(f"{yes}, {no} = split({self.mask}, {first.code})")
            mask = yes if is_and else no
            second = self.name()
            self.emit(f"{second} = np.False_")
            with self.block(f"if {mask} is not False:"), self.narrowed(mask):
                self.emit(f"{second} = {self.condition(operand).code}")
            result = Value(f"({first.code} {sign} {second})", types.boolean)
        return result

    @contextmanager
    def narrowed(self, mask):
        """Evaluates part of an expression in some lanes only."""
        region, outer = self.region, self.mask
        self.masks[region] = mask
        yield
        self.flush_flops()
        self.masks[region] = outer

    def of_IfExp(self, node):
        test = self.condition(node.test)
        if test.static is not MISSING:
            return self.expression(node.body if test.static else node.orelse)
        self.flush_flops()
        yes, no = self.name("m"), self.name("m")
        self.emit(f"{yes}, {no} = split({self.mask}, {test.code})")
        results = []
        for mask, part in ((yes, node.body), (no, node.orelse)):
            holder = self.name()
            self.emit(f"{holder} = None")
            with self.block(f"if {mask} is not False:"), self.narrowed(mask):
                value = self.scalar(part, "a choice")
                self.emit(f"{holder} = {value.code}")
            results.append(Value(holder, value.type))
        kind = results[0].type
        if results[1].type != kind:
            kind = self.unified(kind, results[1].type, node, "the value of this choice")
        dtype = self.dtype(kind)
        return self.temp(f"choose({yes}, {results[0].code}, {results[1].code}, {dtype})", kind)

    # --- arrays ---

    def element(self, node):
        """The array and the index values of a subscript; `A[i][j]` is `A[i, j]`."""
        indices = []
        while isinstance(node, ast.Subscript):
            part = node.slice
            indices = [*(part.elts if isinstance(part, ast.Tuple) else [part]), *indices]
            node = node.value
        array = self.expression(node)
        name = self.written(node)
        if isinstance(array.type, Tuple):
            self.fail(node, f"`{name}` is a tuple and cannot be changed")
        if not isinstance(array.type, Array):
            self.fail(node, f"`{name}` is {describe(array.type)}, not an array, so it has no elements")
        if len(indices) == 1 and isinstance(indices[0], ast.Name):
            kind = self.env.get(indices[0].id)
            if isinstance(kind, Tuple):
                value = self.expression(indices[0])
                self.check_rank(node, array, len(kind.items))
                return array, [Value(f"{value.code}[{i}]", k) for i, k in enumerate(kind.items)]
        values = []
        for part in indices:
            if isinstance(part, ast.Slice):
                self.fail(part, REFUSED[ast.Slice])
            value = self.scalar(part, "an index")
            if not isinstance(value.type, (types.Integer, types.Boolean)):
                self.fail(
                    part,
                    f"an index must be a whole number, and `{self.written(part)}` is {describe(value.type)}; "
                    "use `//` instead of `/`, or `int(...)`",
                )
            values.append(value)
        self.check_rank(node, array, len(values))
        return array, values

    def check_rank(self, node, array, given):
        rank = array.type.ndim
        if given != rank:
            self.fail(
                node,
                f"`{self.written(node)}` has {rank} dimension{'s' * (rank > 1)}: give it {rank} "
                f"{'index' if rank == 1 else 'indices'}, not {given}, such as "
                f"`{element_of(self.written(node), array.type)}`",
            )

    def site(self, node, array, kind) -> int:
        base = node
        while isinstance(base, ast.Subscript):
            base = base.value
        name = self.written(base)
        if kind != "load":
            self.program.stored.add(name)
        site = Site(
            node.lineno, node.col_offset, name, kind, array.type.space, str(array.type.dtype), self.written(node)
        )
        return self.program.sites.setdefault(site, len(self.program.sites))

    def load(self, node, array, index) -> Value:
        number = self.site(node, array, "load")
        return self.temp(
            f"load(w, {number}, {array.code}, {self.mask}, {', '.join(i.code for i in index)})", array.type.dtype
        )

    def store(self, node, array, index, value):
        if not isinstance(value.type, types.Type) or value.type is types.none:
            pick = ""
            if isinstance(value.type, Array):
                pick = f"; pick an element, `{element_of(value.code.removeprefix('v_'), value.type)}`"
            self.fail(
                node, f"an array element holds one number, and the right-hand side is {describe(value.type)}{pick}"
            )
        number = self.site(node, array, "store")
        code = self.converted(value, array.type.dtype)
        self.emit(f"store(w, {number}, {array.code}, {self.mask}, {code}, {', '.join(i.code for i in index)})")

    def of_Subscript(self, node):
        if isinstance(node.value, (ast.Name, ast.Attribute, ast.Call)):
            path = self.dotted(node.value)
            if path in CALLS or path in FUNCTIONS:
                self.fail(node, f"`{self.written(node.value)}` is a function: use parentheses, not brackets")
            if path in ("cuda.threadIdx", "cuda.blockIdx", "cuda.blockDim", "cuda.gridDim"):
                self.fail(node, f"write `{self.written(node.value)}.x`, `.y` or `.z` instead of an index")
            base = None if path else self.expression(node.value)
            if base is not None and isinstance(base.type, Tuple):
                position = self.expression(node.slice)
                if not isinstance(position.static, (int, np.integer)):
                    self.fail(
                        node, f"`{self.written(node.value)}` is a tuple: its index must be a plain number, such as 0"
                    )
                try:
                    kind = base.type.items[position.static]
                except IndexError:
                    self.fail(
                        node,
                        f"`{self.written(node.value)}` has {len(base.type.items)} entries; there is no number "
                        f"{position.static}",
                    )
                static = base.static[position.static] if base.static is not MISSING else MISSING
                return Value(f"{base.code}[{int(position.static)}]", kind, static)
        array, index = self.element(node)
        return self.load(node, array, index)

    # --- calls ---

    def of_Call(self, node):
        return self.expression_call(node, result_used=True)

    def expression_call(self, node, result_used):
        path = self.dotted(node.func)
        if path is None:
            return self.unknown_call(node)
        if node.keywords and path == "print":
            self.fail(
                node,
                f"`print` in a kernel takes no `{node.keywords[0].arg}`; it prints its values and starts a new line",
            )
        if node.keywords and path not in ("cuda.shared.array", "cuda.local.array"):
            self.fail(node, "give the arguments by position, without names")
        if path in CASTS:
            return self.cast(node, CASTS[path])
        if path.startswith("cuda.atomic."):
            return self.atomic(node, path.rsplit(".", 1)[1], result_used)
        if path in ("min", "max"):
            return self.extreme(node, path)
        if path in FUNCTIONS:
            return self.math_call(node, FUNCTIONS[path])
        special = {
            "cuda.grid": self.grid,
            "cuda.gridsize": self.gridsize,
            "cuda.syncthreads": self.syncthreads,
            "cuda.syncwarp": self.syncwarp,
            "cuda.shared.array": lambda n: self.allocate(n, "shared"),
            "cuda.local.array": lambda n: self.allocate(n, "local"),
            "len": self.length,
            "print": self.print,
        }.get(path)
        if special:
            return special(node)
        if path in NO_EFFECT:
            return Value("None", types.none)
        if path == "range":
            self.fail(node, "`range` belongs into a `for` line")
        if path in POSITIONS:
            self.fail(node, f"`{self.written(node.func)}` is a value, not a function: leave the parentheses out")
        self.fail(node, why_unknown(path, self.written(node.func)))

    def unknown_call(self, node):
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in self.env:
                self.fail(
                    node,
                    f"`{function.id}` is a variable, not a function; an element is `{function.id}[...]`, with brackets",
                )
            value = self.names.get(function.id, MISSING)
            device = _unwrap(value)
            if device is not None:
                return self.device_call(node, device)
            if isinstance(value, FunctionType):
                self.fail(
                    node, f"`{function.id}` is an ordinary Python function; put `@cuda.jit(device=True)` above it"
                )
            if value is MISSING:
                if function.id in (
                    "sum",
                    "sorted",
                    "map",
                    "filter",
                    "zip",
                    "enumerate",
                    "list",
                    "dict",
                    "any",
                    "all",
                    "str",
                    "open",
                    "input",
                ):
                    self.fail(node, f"`{function.id}` does not exist on a GPU; write the loop over `range` yourself")
                self.fail(node, f"the function `{function.id}` is not defined{nearest(function.id)}")
        if isinstance(function, ast.Attribute):
            self.of_Attribute(function)
            self.fail(node, f"`{self.written(function)}` is not a function: leave the parentheses out")
        if (
            isinstance(function, ast.Subscript)
            and isinstance(function.value, ast.Name)
            and _unwrap(self.names.get(function.value.id))
        ):
            self.fail(
                node,
                f"a kernel cannot launch another: launch `{function.value.id}` after this one, or make it a "
                "device function",
            )
        self.fail(node, f"`{self.written(function)}` cannot be called in a kernel")

    def device_call(self, node, function):
        arguments = [self.expression(a) for a in node.args]
        kinds = tuple(a.type for a in arguments)
        key = (function, kinds)
        compiled = self.program.compiled.get(key)
        if compiled is None:
            if key in self.program.compiled:
                self.fail(
                    node, f"`{function.__name__}` calls itself; recursion does not work in a kernel, write a loop"
                )
            self.program.compiled[key] = None
            compiled = _FunctionTranslator(self.program, function, kinds, is_kernel=False).run()
            self.program.compiled[key] = compiled
        callee, kind = compiled
        name = self.constant(callee)
        self.flush_flops()
        wait = "yield from " if self.program.blocking else ""
        call = f"({wait}{name}(w, {self.mask}{''.join(', ' + a.code for a in arguments)}))"
        return self.temp(self.retyped(call, kind), kind)

    def arguments(self, node, count, what):
        if len(node.args) != count:
            self.fail(node, f"{what} takes {count} argument{'s' * (count != 1)}, not {len(node.args)}")
        return [self.scalar(a, what) for a in node.args]

    def cast(self, node, kind):
        (value,) = self.arguments(node, 1, f"`{self.written(node.func)}`")
        if value.static is not MISSING:
            with np.errstate(all="ignore"):
                static = lanes.dtype_of(kind).type(value.static)
            return Value(self.constant(static), kind, static)
        if kind == types.boolean:
            return Value(f"truth({value.code})", kind)
        return Value(self.converted(value, kind), kind)

    def extreme(self, node, path):
        if len(node.args) < 2:
            self.fail(node, f"`{path}` compares two or more numbers here; loop over an array to find its {path}imum")
        values = [self.scalar(a, f"`{path}`") for a in node.args]
        kind = lanes.unify(*(v.type for v in values))
        code = self.converted(values[0], kind)
        for value in values[1:]:
            code = f"{path}imum({code}, {self.converted(value, kind)})"
        return Value(code, kind)

    def math_call(self, node, function):
        values = [self.scalar(a, f"`{function.name}`") for a in node.args]
        resolved = lanes.resolve(function.typed_as, tuple(v.type for v in values))
        if resolved is None:
            given = ", ".join(describe(v.type) for v in values)
            self.fail(node, f"`{self.written(node.func)}` does not take {given}")
        result, kinds = resolved
        code = f"{self.constant(function.run)}({', '.join(self.converted(v, k) for v, k in zip(values, kinds))})"
        return Value(f"cast({code}, {self.dtype(result)})", result)

    def axes(self, node):
        if len(node.args) != 1:
            self.fail(node, f"`{self.written(node.func)}` takes one number: how many dimensions, 1, 2 or 3")
        count = self.expression(node.args[0]).static
        if count not in (1, 2, 3):
            self.fail(node, f"`{self.written(node.func)}` takes the number of dimensions, 1, 2 or 3, as a plain number")
        return int(count)

    def grid(self, node):
        axes = self.axes(node)
        if axes == 1:
            return self.temp("w.grid1()", types.int64)
        return self.temp(f"w.grid({axes})", Tuple((types.int64,) * axes))

    def gridsize(self, node):
        axes = self.axes(node)
        if axes == 1:
            return Value("w.gridsize(0)", types.int64)
        return Value(f"({', '.join(f'w.gridsize({i})' for i in range(axes))})", Tuple((types.int64,) * axes))

    def syncthreads(self, node):
        self.flush_flops()
        self.emit(f"if w.chunk.barrier(w, {self.mask}, {node.lineno}): yield ({node.lineno}, {self.mask})")
        return Value("None", types.none)

    def syncwarp(self, node):
        self.emit(f"sync_warps(w, {self.mask})")
        return Value("None", types.none)

    def length(self, node):
        if len(node.args) != 1:
            self.fail(node, "`len` takes one argument")
        value = self.expression(node.args[0])
        if isinstance(value.type, Array):
            return Value(f"{value.code}.shape_values[0]", types.int64)
        if isinstance(value.type, Tuple):
            return self.known(len(value.type.items), node)
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

    def allocate(self, node, space):
        given = dict(zip(("shape", "dtype"), node.args)) | {k.arg: k.value for k in node.keywords}
        call = f"cuda.{space}.array"
        if set(given) != {"shape", "dtype"}:
            self.fail(node, f"`{call}` takes a shape and a dtype: `{call}((16, 16), float32)`")
        sizes = given["shape"]
        for part in sizes.elts if isinstance(sizes, ast.Tuple) else [sizes]:
            if not isinstance(part, (ast.Constant, ast.Name)) or (isinstance(part, ast.Name) and part.id in self.env):
                fixed = self.expression(part).static is not MISSING
                self.fail(
                    part,
                    f"the size `{self.written(part)}` must be a plain number or a name given outside the kernel, "
                    "because numba "
                    f"needs it when it compiles: write `SIZE = {self.written(part) if fixed else '...'}` above "
                    "the kernel "
                    "and use SIZE",
                )
        shape = self.expression(sizes).static
        shape = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in shape):
            self.fail(sizes, f"the shape `{self.written(sizes)}` must be whole numbers")
        shape = tuple(int(n) for n in shape)
        dynamic = space == "shared" and shape == (0,)
        if not dynamic and any(n <= 0 for n in shape):
            self.fail(sizes, f"the shape {shape} must be positive in every dimension")
        kind = CASTS.get(self.dotted(given["dtype"]) or "")
        if kind is None:
            self.fail(
                given["dtype"],
                f"`{self.written(given['dtype'])}` is not a dtype; use `float32` from numba, or `np.float32`",
            )
        key = (self.function, node.lineno, node.col_offset)
        self.program.allocations[key] = Allocation(
            self.target_name(node, space), space, 0 if dynamic else shape, lanes.dtype_of(kind), node.lineno
        )
        number = list(self.program.allocations).index(key)
        return Value(f"w.allocated({number})", Array(kind, len(shape), space))

    def target_name(self, node, space):
        for statement in ast.walk(self.source.tree):
            if (
                isinstance(statement, ast.Assign)
                and statement.value is node
                and isinstance(statement.targets[0], ast.Name)
            ):
                return statement.targets[0].id
        return space

    def atomic(self, node, name, result_used):
        if name not in ATOMICS:
            self.fail(node, why_unknown(f"cuda.atomic.{name}", self.written(node.func)))
        count = 4 if name == "cas" else 3
        if len(node.args) != count:
            values = "old, new" if name == "cas" else "value"
            self.fail(
                node,
                f"write `cuda.atomic.{name}(array, index, {values})`: it takes {count} arguments, not {len(node.args)}",
            )
        subscript = ast.copy_location(ast.Subscript(node.args[0], node.args[1], ast.Store()), node)
        ast.fix_missing_locations(subscript)
        array, index = self.element(subscript)
        if array.type.space == "local":
            self.fail(node, "an atomic on a thread's own local array has no meaning; use plain `+=`")
        values = [self.converted(self.scalar(a, "an atomic"), array.type.dtype) for a in node.args[2:]]
        number = self.site(subscript, array, "atomic")
        if name in ("add", "sub") and isinstance(array.type.dtype, types.Float):
            self.count_flops(array.type.dtype, 1)
        self.flush_flops()
        self.program.keeps_clocks |= result_used
        value, old = values[-1], values[0] if name == "cas" else "None"
        code = (
            f"atomic(w, {number}, {array.code}, {self.mask}, {name!r}, {value}, {old}, {result_used}, "
            f"{', '.join(i.code for i in index)})"
        )
        if result_used:
            return self.temp(code, array.type.dtype)
        self.emit(code)
        return Value("None", types.none)

    # --- counting ---

    def count_flops(self, kind, amount):
        key = (self.mask, lanes.dtype_of(kind).name)
        self.flops[key] = self.flops.get(key, 0) + amount

    def flush_flops(self):
        for (mask, dtype), amount in self.flops.items():
            self.emit(f"w.chunk.launch.flops[{dtype!r}] += {amount} * w.count({mask})")
        self.flops.clear()


_LANE_HELPERS = (
    "split both union minus select choose lane_range cast truth logical_not minimum maximum integer_power".split()
)
_MEMORY_HELPERS = "load store atomic sync_warps".split()


def element_of(name, array) -> str:
    """How to write one element of the array."""
    return f"{name}[{('i', 'row, col', 'z, row, col')[array.ndim - 1] if array.ndim < 4 else '...'}]"


def describe(kind) -> str:
    """A type in a learner's words."""
    if isinstance(kind, Array):
        return f"an array of {kind.dtype}"
    if isinstance(kind, Tuple):
        return f"a tuple of {len(kind.items)} values"
    if kind is str:
        return "text"
    if kind is types.none:
        return "nothing"
    return str(kind)
