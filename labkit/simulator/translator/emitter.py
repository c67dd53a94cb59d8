"""The state of a translation, and the lines that it writes."""

import ast
from contextlib import contextmanager
from typing import Any

from labkit.simulator import limits
from labkit.simulator.errors import KernelError
from labkit.simulator.numba_types import dtype_of
from labkit.simulator.reading.folding import as_written
from labkit.simulator.reading.source import argument_names, captured_values, read_source
from labkit.simulator.seam import types
from labkit.simulator.translator.after_atomics import accesses_after_atomics, holds_atomics
from labkit.simulator.translator.guesses import find_guesses
from labkit.simulator.translator.homes import Homes
from labkit.simulator.translator.program import Access
from labkit.simulator.values import MISSING, Value, form_of


class Emitter:
    """Writes the lines of one function: names, temporaries, constants, blocks, masks and FLOP counts.

    A `kind` is a type: numba's, or one of `values`. In the lines, `w` is the warp set that runs.

    At each point of the walk over the syntax tree `env` has the type of each variable, `assigned` the variables that
    all lanes here have assigned, and `masks` the mask of each enclosing region. `reachable`: some lane comes there.
    `maybe_unassigned` are variables that some read may find without a value, and `assigned_elsewhere` those
    assigned only on another path or in an earlier iteration. `first_types` has each one's first type in the text.
    """

    def __init__(self, program, function, argument_types, is_kernel, position=None):
        """`position`: the (line, column) of all nodes of a function whose own lines are in another file."""
        self.program = program
        self.function = function
        self.source = read_source(function, position)
        self.argument_types = argument_types
        self.is_kernel = is_kernel
        self.parameters = argument_names(self.source)
        self.names = captured_values(function)
        self.homes = Homes(self.source.tree, self.source.free)
        has_atomics = holds_atomics(function, program.atomic)
        self.guesses = find_guesses(self.source.tree) if has_atomics else set()
        self.after_atomics = (
            accesses_after_atomics(self.source.tree, self.names, program.atomic) if has_atomics else set()
        )
        self.waits: dict[ast.AST, tuple[bool, bool]] = {}  # what `guard_fork` knows of branches and loops
        self.env: dict[str, Any] = {}
        self.lines: list[str] = []
        self.indent = 1
        self.counter = 0
        self.masks = {"function": "m0"}
        self.region = "function"
        self.loops: list[dict] = []
        self.literals: dict[str, Any] = {}  # literals of variables that are assigned once (`literal`)
        self.flops: dict[tuple[str, str], int] = {}
        self.return_types: list = []
        self.local_types: dict[str, Any] = {}
        self.forms = {name: [form_of(kind)] for name, kind in zip(self.parameters, argument_types)}
        self.loop_head_types: dict[
            tuple, dict[str, Any]
        ] = {}  # the types at the head of each loop, from the previous walk
        self.unstable_loop: ast.AST | None = None  # a loop whose end has other types than its head
        self.result_types: dict[tuple, Any] = {}  # of operations and calls
        self.integer_quotients: set[ast.AST] = set()  # quotients of integers, which are float64
        self.unrolling: tuple[int, ...] = ()  # the current copy of each unrolled loop around
        self.has_unrolled = False
        self.replacements: dict[ast.AST, ast.AST] = {}  # nodes walked in place of others
        self.reachable = True
        self.may_return_none = False  # it returns a value on some paths and None on others
        self.exits = 0  # places so far where an exception may end lanes
        self.assigned: set[str] = set()
        self.maybe_unassigned: set[str] = set()
        self.assigned_elsewhere: set[str] = set()
        self.first_types: dict[str, Any] = {}

    def replacement_node(self, node, make) -> ast.AST:
        """Return the node that `make` returns, to be walked in place of another: the same one in every walk."""
        if node not in self.replacements:
            self.replacements[node] = ast.copy_location(make(), node)
        return self.replacements[node]

    def copy_of(self, node) -> tuple:
        """Return the node with the current copy of the unrolled loops around it."""
        return node, self.unrolling

    def emit(self, text):
        """Write a line."""
        self.lines.append("    " * self.indent + text)
        self.program.characters += len(text)
        if self.program.characters > limits.MAX_TEXT:
            self.too_long()

    def visit(self):
        """Count a part of the source that is about to be translated."""
        self.program.visits += 1
        if self.program.visits > limits.MAX_VISITS:
            self.too_long()

    def too_long(self):
        what = "inspect" if self.program.watch else "translate"
        self.fail(self.source.tree, f"this kernel is too long to {what}: shorten it, or write what repeats as a loop")

    @contextmanager
    def block(self, header):
        """Write a header, and the lines written inside as its indented block."""
        self.emit(header)
        outer, exits = self.indent, self.exits
        self.indent += 1
        mark = len(self.lines)
        yield
        if len(self.lines) == mark:
            self.emit("pass")
        self.indent = outer
        if self.exits > exits:
            self.drop_exited()

    def drop_exited(self):
        """Drop the lanes that an exception has ended; the lines to the end of this block run where some are left."""
        self.flush_flops()
        self.emit("gone = union(gone, w.exited)")
        self.emit(f"{self.mask} = minus({self.mask}, w.exited)")
        self.emit(f"if {self.mask} is not False:")
        self.indent += 1
        self.emit("pass")

    def name(self, prefix="t"):
        """Return a new name in the generated code."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def temp(self, code, kind, static=MISSING):
        """Assign an expression to a new name, and return its Value."""
        name = self.name()
        self.emit(f"{name} = {code}")
        return Value(name, kind, static)

    def kept(self, value) -> Value:
        """Return the value under a name of its own, for code that names it several times."""
        return value if value.code.isidentifier() else self.temp(value.code, value.type, value.static)

    def constant(self, value) -> str:
        """Return the name of a Python object in the generated code."""
        namespace = self.program.namespace
        key = f"K{len(namespace)}"
        namespace[key] = value
        return key

    def dtype(self, kind) -> str:
        """Return the name of a type's NumPy dtype in the generated code."""
        dtype = dtype_of(kind)
        key = f"D_{dtype.name}"
        self.program.namespace[key] = dtype
        return key

    @property
    def mask(self):
        return self.masks[self.region]

    @contextmanager
    def in_region(self, region, mask):
        """Translate what is inside in a region, whose mask is the name `mask`."""
        outer = self.region
        self.region = region
        self.masks[region] = mask
        yield
        self.flush_flops()
        self.region = outer

    @contextmanager
    def with_mask(self, mask):
        """Evaluate part of an expression in some lanes only."""
        region, outer = self.region, self.mask
        self.masks[region] = mask
        yield
        self.flush_flops()
        self.masks[region] = outer

    def count_flops(self, node, kind, amount):
        """Count a node's floating-point operations per lane of the current mask."""
        kind = kind.underlying_float if isinstance(kind, types.Complex) else kind
        if kind == types.float64:
            self.program.float64_lines.add(node.lineno)
        key = (self.mask, kind.name)
        self.flops[key] = self.flops.get(key, 0) + amount

    def flush_flops(self):
        """Write the line that adds the counted FLOPs."""
        for (mask, dtype), amount in self.flops.items():
            self.emit(f"w.chunk.launch.flops[{dtype!r}] += {amount} * w.tally({mask})")
        self.flops.clear()

    def pause(self, node, site, array, commutes=""):
        """Let other warps run first, in a kernel whose orders are explored."""
        if self.program.pauses and any(alternative.space != "local" for alternative in array.type.each):
            self.program.namespace["Access"] = Access
            self.emit(f"yield ({node.lineno}, {self.mask}, Access({site}, {commutes!r}))")

    def wait_line(self, node) -> int:
        """Return the line of a wait, and keep its column for findings."""
        self.program.wait_columns.setdefault(node.lineno, node.col_offset)
        return node.lineno

    def fail(self, node, message):
        """Raise KernelError at the line of a node."""
        raise KernelError(message, getattr(node, "lineno", self.source.first_line))

    def written(self, node) -> str:
        """Return a node's source text."""
        return ast.unparse(as_written(node))
