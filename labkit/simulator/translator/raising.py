"""`raise` and `assert`: the thread ends there, as in what numba-cuda compiles."""

import ast
import builtins

from labkit.simulator.reading.trusted import exception_name
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, is_known

PLAIN = bool, int, float, str, tuple


class Raising(Variables):
    """Ends threads by exceptions."""

    def do_Raise(self, node):
        if node.exc is None or node.cause is not None:
            self.fail(node, "`raise` in a kernel names one exception: write `raise ValueError('...')`")
        called = isinstance(node.exc, ast.Call)
        error = self.exception(node.exc.func if called else node.exc)
        if error is None or (called and node.exc.keywords):
            self.fail(
                node, f"`{self.written(node.exc)}` is not an exception for a kernel; write `raise ValueError('...')`"
            )
        arguments = tuple(map(self.exception_argument, node.exc.args)) if called else ()
        self.emit_raise(node, self.mask, error, arguments)
        self.emit(f"gone = union(gone, {self.mask})")
        self.emit(f"{self.mask} = False")
        self.reachable = False

    def do_Assert(self, node):
        arguments = () if node.msg is None else (self.exception_argument(node.msg),)
        test = self.condition(node.test)
        if test.static is not MISSING and test.static:
            return
        self.flush_flops()
        yes, no = self.name("m"), self.name("m")
        self.emit(f"{yes}, {no} = split({self.mask}, {test.code})")
        with self.block(f"if {no} is not False:"):
            self.emit_raise(node, no, "AssertionError", arguments)

    def emit_raise(self, node, mask, error, arguments):
        """Write the end of the lanes of a mask by an exception."""
        where = self.source.tree.name, node.lineno, node.col_offset
        self.flush_flops()
        self.exits += 1
        self.emit(f"end_raised(w, {mask}, {error!r}, {self.constant(arguments)}, {self.constant(where)})")

    def exception(self, node) -> str | None:
        """Return the name of the exception that an expression names; of a class of the module, its built-in base."""
        value = self.value_outside_kernel(node)
        if isinstance(node, ast.Name) and node.id not in self.env and node.id not in self.names:
            value = getattr(builtins, node.id, None)
        return exception_name(value)

    def exception_argument(self, node):
        """Return an argument of an exception, which numba-cuda needs when it compiles the kernel."""
        value = self.literal(node)
        if isinstance(node, ast.JoinedStr) and all(isinstance(part, ast.Constant) for part in node.values):
            value = "".join(part.value for part in node.values)
        if not is_known(value) or not isinstance(value, PLAIN):
            self.fail(
                node,
                f"numba-cuda raises with what it knows when it compiles, and `{self.written(node)}` is not: write "
                "plain text, such as `'x is negative'`",
            )
        return value
