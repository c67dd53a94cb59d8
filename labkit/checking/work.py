"""The work of a restricted function: hooks in its tree that count it, and stop it where it is too much.

A round of a loop and a call count one. Where Python's own functions and operators go through a value, each of its parts
counts one, as often as it is reached: a tuple nested forty deep has more parts than can ever be compared.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar

Tree = TypeVar("Tree", bound=ast.AST)

MAX_ROUNDS = 200_000  # that one answer takes
MAX_BITS = 4096  # of a whole number
LETTERS_PER_ROUND = 64  # of a text
LIGHT_FUNCTIONS = {"bool", "isinstance", "len", "next", "range"}  # which go through nothing
LIGHT_METHODS = {"add", "append", "extend", "get", "items", "keys", "pop", "setdefault", "update", "values"}
SIGNS = {
    ast.Add: ("+", operator.add, operator.iadd),
    ast.Sub: ("-", operator.sub, operator.isub),
    ast.Mult: ("*", operator.mul, operator.imul),
    ast.Div: ("/", operator.truediv, operator.itruediv),
    ast.FloorDiv: ("//", operator.floordiv, operator.ifloordiv),
    ast.Mod: ("%", operator.mod, operator.imod),
    ast.Pow: ("**", operator.pow, operator.ipow),
    ast.BitAnd: ("&", operator.and_, operator.iand),
    ast.BitOr: ("|", operator.or_, operator.ior),
}
OPERATIONS = {sign: operation for sign, operation, _ in SIGNS.values()}
OPERATIONS |= {f"{sign}=": operation for sign, _, operation in SIGNS.values()}


class TooMuchWork(Exception):
    """An answer goes beyond a limit; the message is a sentence without its end."""


class Work:
    """The work of one answer so far, and the hooks by which a compiled function counts it."""

    def __init__(self):
        self.rounds = 0
        self.hooks: dict[str, Callable] = {
            "count__": self.count,
            "iterate__": self.iterate,
            "weigh__": self.weigh,
            "operate__": self.operate,
            "operate_at__": self.operate_at,
            "slice__": slice,
            "range": self.range,
        }

    def count(self, rounds: int = 1) -> None:
        """Count rounds of loops, calls, and parts of values."""
        self.rounds += rounds
        if self.rounds > MAX_ROUNDS:
            raise TooMuchWork(
                f"the function was stopped after {MAX_ROUNDS:,} iterations and calls: it does not seem to end"
            )

    def iterate(self, values: Iterable) -> Iterator:
        """Yield the values and count a round for each."""
        for value in values:
            self.count()
            yield value

    def weigh(self, value: Any) -> Any:
        """Count the parts of a value, and return it."""
        if isinstance(value, int | float | None):
            return value
        parts = [value]
        for part in parts:  # which grows
            if isinstance(part, str):
                self.count(len(part) // LETTERS_PER_ROUND)
            elif isinstance(part, Sized):
                self.count(len(part))
            if isinstance(part, tuple | list | set | frozenset | dict):
                parts += part
            if isinstance(part, dict):
                parts += part.values()
        return value

    def operate(self, sign: str, left: Any, right: Any) -> Any:
        """Return `left sign right`; a whole number and a repeated sequence may not be too large."""
        if not (sign in ("+=", "|=") and isinstance(left, list | set | dict)):  # which grow where they are
            self.weigh(left)
        self.weigh(right)
        if sign[0] == "%" and isinstance(left, str):
            raise TypeError("`%` after a text is not known here; write an f-string")
        if sign in ("*", "*=") and isinstance(left, Sized) != isinstance(right, Sized):
            values, times = (left, right) if isinstance(left, Sized) else (right, left)
            if isinstance(times, int) and len(values) * times > MAX_ROUNDS:
                raise TooMuchWork(f"a {type(values).__name__} of more than {MAX_ROUNDS:,} parts is too long here")
        if sign[:2] == "**" and _is_large_power(left, right):  # before it is computed
            raise TooMuchWork(f"a power of more than {MAX_BITS:,} bits is too large here: take a smaller exponent")
        result = OPERATIONS[sign](left, right)
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            raise TooMuchWork(f"a whole number of more than {MAX_BITS:,} bits is too large here")
        return result

    def operate_at(self, sign: str, values: Any, index: Any, right: Any) -> None:
        """Do `values[index] sign= right`."""
        values[index] = self.operate(sign, values[index], right)

    def range(self, *ends: int) -> range:
        """Return Python's range if it is not too long."""
        indices = range(*ends)
        if len(indices) > MAX_ROUNDS:
            raise TooMuchWork(f"a range of more than {MAX_ROUNDS:,} numbers is too long here")
        return indices


def _is_large_power(base, exponent):
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    return is_whole and (base.bit_length() - 1) * exponent > MAX_BITS


def insert_hooks(definition: ast.FunctionDef, helpers: Iterable[str]) -> None:
    """Insert the hooks into a function; `helpers` are the names of functions that have hooks of their own."""
    nodes = [*ast.walk(definition)]
    inner = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    other = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    other |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    _Inserter({*LIGHT_FUNCTIONS, *helpers, *inner} - other).visit(definition)


class _Inserter(ast.NodeTransformer):
    """Wraps what goes through values: operators, comparisons, calls, keys, slices, stars, formatted values."""

    def __init__(self, light: set[str]):
        self.light = light

    def visit(self, node: ast.AST) -> Any:
        """Visit a node's children, then the node."""
        self.generic_visit(node)
        changed = getattr(self, f"visit_{type(node).__name__}", lambda same: same)(node)
        return set_line(node, changed)

    def visit_FunctionDef(self, node: Any) -> Any:
        node.body.insert(0, set_line(node, ast.Expr(call("count__"))))
        return node

    visit_For = visit_While = visit_FunctionDef

    def visit_Assert(self, node: Any) -> Any:
        node.msg = node.msg and _weigh(node.msg)
        return node

    def visit_Lambda(self, node: Any) -> Any:
        node.body = ast.Subscript(ast.Tuple([call("count__"), node.body], ast.Load()), ast.Constant(1), ast.Load())
        return node

    def visit_comprehension(self, node: Any) -> Any:
        node.iter = set_line(node.iter, call("iterate__", node.iter))
        return node

    def visit_BinOp(self, node: Any) -> Any:
        return call("operate__", ast.Constant(SIGNS[type(node.op)][0]), node.left, node.right)

    def visit_AugAssign(self, node: Any) -> Any:
        sign = ast.Constant(SIGNS[type(node.op)][0] + "=")
        if isinstance(node.target, ast.Subscript):
            return ast.Expr(call("operate_at__", sign, node.target.value, _index_value(node.target.slice), node.value))
        return ast.Assign([node.target], call("operate__", sign, ast.Name(node.target.id, ast.Load()), node.value))

    def visit_Compare(self, node: Any) -> Any:
        node.left, node.comparators = _weigh(node.left), _weigh_each(node.comparators)
        return node

    def visit_Call(self, node: Any) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr not in LIGHT_METHODS:
            node.func.value = _weigh(node.func.value)
        is_light = isinstance(node.func, ast.Name) and node.func.id in self.light
        if not (is_light or isinstance(node.func, ast.Attribute) and node.func.attr == "append"):
            node.args = _weigh_each(node.args)
            for keyword in node.keywords:
                keyword.value = _weigh(keyword.value)
        return node

    def visit_Subscript(self, node: Any) -> Any:
        if isinstance(node.slice, ast.Slice):
            node.value = _weigh(node.value)
        else:
            node.slice = _weigh(node.slice)
        return node

    def visit_Assign(self, node: Any) -> Any:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [part for target in targets for part in ast.walk(target)]
        if node.value and any(isinstance(part, ast.Starred | ast.Slice) for part in parts):
            node.value = _weigh(node.value)
        return node

    visit_AnnAssign = visit_Assign

    def visit_Set(self, node: Any) -> Any:
        node.elts = _weigh_each(node.elts)
        return node

    def visit_SetComp(self, node: Any) -> Any:
        node.elt = _weigh(node.elt)
        return node

    def visit_Dict(self, node: Any) -> Any:
        node.keys = [key and _weigh(key) for key in node.keys]
        node.values = [value if key else _weigh(value) for key, value in zip(node.keys, node.values, strict=True)]
        return node

    def visit_DictComp(self, node: Any) -> Any:
        node.key = _weigh(node.key)
        return node

    def visit_Starred(self, node: Any) -> Any:
        if isinstance(node.ctx, ast.Load):
            node.value = _weigh(node.value)
        return node

    def visit_FormattedValue(self, node: Any) -> Any:
        node.value = _weigh(node.value)
        return node


def _weigh(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ast.Constant | ast.Starred) else set_line(node, call("weigh__", node))


def _weigh_each(nodes: list[ast.expr]) -> list[ast.expr]:
    return [_weigh(node) for node in nodes]


def _index_value(index):
    """Return an index as an expression: Python's syntax allows a slice only between brackets."""
    if not isinstance(index, ast.Slice):
        return index
    return call("slice__", *(part or ast.Constant(None) for part in (index.lower, index.upper, index.step)))


def call(name: str, *arguments: ast.expr) -> ast.Call:
    """Return the call of a hook."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def set_line(source_node: ast.AST, tree: Tree) -> Tree:
    """Give all nodes of a tree without a line that of another node."""
    for node in ast.walk(tree):
        if not hasattr(node, "lineno") and hasattr(source_node, "lineno"):
            ast.copy_location(node, source_node)
    return tree
