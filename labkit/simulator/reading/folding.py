"""Constant expressions, which Python's compiler computes before numba sees the function.

numba reads bytecode: `10 ** -3` is the number 0.001 there, and `[1, 2]` in a `for` line is a tuple. Which expressions
are folded, and up to which size, differs between versions of Python (CPython, "Python/ast_opt.c"). So each expression
is compiled, and its bytecode read.
"""

import ast
import dis
import warnings
from copy import deepcopy

from labkit.simulator.reading.syntax import walk

RETURNS_A_CONSTANT = ["LOAD_CONST", "RETURN_VALUE"], ["RETURN_CONST"]  # Python 3.11, and 3.12 on


def fold_constants(tree: ast.AST) -> ast.AST:
    """Replace constant expressions by their values, as Python's compiler does; changes the tree.

    A replaced expression keeps its line, its column, and its text (`as_written`).
    """
    return _Folder().visit(tree)


def as_written(node: ast.AST) -> ast.AST:
    """Return the node as its author wrote it, with every constant expression spelled out."""
    return _Unfolder().visit(deepcopy(node)) if any(hasattr(n, "unfolded") for n in walk(node)) else node


class _Folder(ast.NodeTransformer):
    """Folds from the leaves up: an expression is constant only after its parts are."""

    def visit_UnaryOp(self, node):
        return _fold(self.generic_visit(node))

    visit_BinOp = visit_Subscript = visit_UnaryOp

    def visit_Name(self, node):
        return _fold(node) if node.id == "__debug__" else node

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = _list_as_tuple(node.iter)
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if isinstance(node.ops[-1], ast.In | ast.NotIn):
            node.comparators[-1] = _list_as_tuple(node.comparators[-1])
        return node


class _Unfolder(ast.NodeTransformer):
    def visit(self, node):
        return self.generic_visit(getattr(node, "unfolded", node))


def _fold(node):
    """Return a constant in place of an operation on constants, if Python's compiler computes it."""
    operands = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    if not all(map(_is_constant, operands)) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return node
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python gave them when it compiled the function
        code = compile(ast.Expression(node), "<constant expression>", "eval")
    steps = [step for step in dis.get_instructions(code) if step.opname != "RESUME"]
    if [step.opname for step in steps] not in RETURNS_A_CONSTANT:
        return node
    return replacement(node, _constant(steps[0].argval))


def _is_constant(node):
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and all(map(_is_constant, node.elts)))


def _constant(value):
    """Return the syntax of a constant; a tuple remains one, since shapes and indices read its parts."""
    return ast.Tuple([*map(_constant, value)], ast.Load()) if isinstance(value, tuple) else ast.Constant(value)


def _list_as_tuple(node):
    if not isinstance(node, ast.List) or any(isinstance(part, ast.Starred) for part in node.elts):
        return node
    return replacement(node, ast.Tuple(node.elts, ast.Load()))


def replacement(node, new):
    """Return `new` at the place of a node, whose text it keeps."""
    new.unfolded = node
    return ast.fix_missing_locations(ast.copy_location(new, node))
