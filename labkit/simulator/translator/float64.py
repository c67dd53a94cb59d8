"""Advice against float64 that nobody asked for: wide operands of float32, and quotients that become whole numbers."""

import ast

from labkit.simulator.reading.syntax import walk
from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING
from labkit.trace import Finding

MAX_SHOWN = 40  # characters of an operand that a message repeats


class Float64Advice(Variables):
    """Notes float64 at a line, with what to write there."""

    def advise_float64(self, node, message):
        """Add advice for the line of a node, if it has none."""
        finding = Finding("float64", "advice", f"Line {node.lineno}: {message}", node.lineno, node.col_offset)
        self.program.advice.setdefault((node.lineno, "float64"), finding)

    def note_float64(self, node, left, right, result, sign):
        """Advise where a wider operand makes a float32 expression float64, at a fraction of the speed."""
        if result != types.float64 or types.float32 not in (left.type, right.type):
            return
        if hasattr(node, "own_place"):  # it is in another file, and stands at the line that calls it
            slow = f"`{sign}` in the function that is called here computes in float64"
            self.advise_float64(node, f"{slow}, which is 2 to 64 times slower than float32 on a GPU.")
            return
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        number = 1 if left.type == types.float32 else 0
        other, value = sides[number], (left, right)[number]
        text = self.written(other)
        text = text if len(text) <= MAX_SHOWN else "the other side"
        shown = text if text == "the other side" else f"`{text}`"
        cast = self.float32_name()
        converted = f"`{cast}(...)`" if text == "the other side" else f"`{cast}({text})`"
        if start := self._start_of(other, node.lineno):
            start_value = f"{text} = {cast}({start.value})"
            why = f"{shown} starts from {start.value} in line {start.lineno}; write `{start_value}` there"
        elif isinstance(other, ast.Subscript) and value.type == types.float64:
            why = f"{shown} is float64; make the array float32, as by `np.zeros(n, np.float32)`"
        elif isinstance(node, ast.AugAssign) and number == 0:
            why = f"{shown} is {value.type}; keep the sum in a float32"
        else:
            why = f"{shown} is {value.type}; write {converted}"
        self.advise_float64(
            node, f"`{sign}` here computes in float64, which is 2 to 64 times slower than float32 on a GPU: {why}."
        )

    def _start_of(self, node, line):
        """Return the number that a variable was given before a line, with its line; None if it was no number."""
        if not isinstance(node, ast.Name) or node.id not in self.env:
            return None
        for statement in walk(self.source.tree):
            match statement:
                case ast.Assign([ast.Name(name)], ast.Constant(int() | float()) as value):
                    if name == node.id and value.lineno < line:
                        return value
        return None

    def note_quotient(self, node, value):
        """Advise where a quotient of integers, which is float64, becomes a whole number at once."""
        if node in self.integer_quotients and value.static is MISSING:
            self.advise_float64(
                node,
                f"`{self.written(node)}` divides in float64, which is 2 to 64 times slower than float32 on a GPU, and "
                f"the result is cut to a whole number; write `{self.written(in_whole_numbers(node))}`.",
            )


def in_whole_numbers(node: ast.expr) -> ast.expr:
    """Return the expression with `//` in place of `/`, for `a / b` and `int(a / b)`; another one as it is."""
    match node:
        case ast.Call(ast.Name("int"), [ast.BinOp(left, ast.Div(), right)]) | ast.BinOp(left, ast.Div(), right):
            return ast.copy_location(ast.BinOp(left, ast.FloorDiv(), right), node)
    return node
