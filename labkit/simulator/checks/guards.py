"""Guards of an access: the comparisons in the source that let a thread come to it."""

import ast
from dataclasses import dataclass

from labkit.simulator.reading.folding import as_written
from labkit.trace import Site

NEGATED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}


@dataclass(frozen=True)
class Guard:
    """A comparison `smaller < larger`, or `<=`, that holds where the access is made.

    `leaves` is true if the text has its opposite, behind which the thread returns.
    """

    line: int
    text: str
    smaller: ast.expr
    larger: ast.expr
    strict: bool
    leaves: bool


def guards_of(tree: ast.FunctionDef, site: Site) -> list[Guard]:
    """Return the guards of an access, the innermost first.

    Those with a variable that changes between guard and access are left out.
    """
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    child = next((n for n in parents if _is_at(n, site)), None)
    found: list[Guard] = []
    while child in parents:
        node = parents[child]
        for siblings in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(siblings, list) and child in siblings:
                for sibling in reversed(siblings[: siblings.index(child)]):
                    if isinstance(sibling, ast.If) and not sibling.orelse and _leaves(sibling.body[-1]):
                        found += _comparisons(sibling.test, ast.Or, negated=True)
                if isinstance(node, ast.If | ast.While):
                    negated = siblings is node.orelse
                    found += _comparisons(node.test, ast.Or if negated else ast.And, negated)
        child = node
    stores = [(n.id, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return [g for g in found if not any(g.line < at <= site.line and name in _names(g.smaller) for name, at in stores)]


def halfhearted_guards(tree: ast.FunctionDef, line: int) -> list[tuple[ast.If, list[Guard]]]:
    """Return the `if a and b: return` before a line, and what would hold there if it were `or`.

    One before a barrier is left out, which threads outside may have to reach.
    """
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("syncthreads")]
    last_barrier = max((call.lineno for call in calls), default=0)
    return [
        (node, _comparisons(ast.BoolOp(ast.Or(), node.test.values), ast.Or, negated=True))
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and last_barrier < node.lineno < line
        and _leaves(node.body[-1])
        and isinstance(node.test, ast.BoolOp)
        and isinstance(node.test.op, ast.And)
    ]


def enclosing_loop(tree: ast.FunctionDef, line: int, name: str) -> ast.For | None:
    """Return the innermost loop over a range of the variable `name` around a line, if its step is not given."""
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For) and n.lineno <= line <= (n.end_lineno or line)]
    for loop in reversed(loops):
        match loop:
            case ast.For(ast.Name(target), ast.Call(ast.Name("range"), arguments)) if target == name:
                return loop if len(arguments) < 3 else None
    return None


def split_constant(node: ast.expr) -> tuple[str, int]:
    """Return an integer expression as the text of a part, and the constant that is added to it."""
    match node:
        case ast.BinOp(left, ast.Add(), ast.Constant(int(value))) | ast.BinOp(
            ast.Constant(int(value)), ast.Add(), left
        ):
            text, constant = split_constant(left)
            return text, constant + value
        case ast.BinOp(left, ast.Sub(), ast.Constant(int(value))):
            text, constant = split_constant(left)
            return text, constant - value
    return ast.unparse(node), 0


def _is_at(node, site):
    position = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    return position == (site.line, site.column) and ast.unparse(as_written(node)) == site.text


def _leaves(statement):
    return isinstance(statement, ast.Return | ast.Continue)


def _comparisons(test, joined, negated):
    """Return the comparisons that hold where the test does, or, if negated, where it does not."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, joined) else [test]
    found = []
    for part in parts:
        if not isinstance(part, ast.Compare) or (negated and len(part.ops) > 1):
            continue
        for left, sign, right in zip([part.left, *part.comparators], part.ops, part.comparators):
            kind = NEGATED.get(type(sign)) if negated else type(sign)
            if kind not in NEGATED:
                continue
            smaller, larger = (left, right) if kind in (ast.Lt, ast.LtE) else (right, left)
            text = f"{ast.unparse(left)} {SIGNS[type(sign)]} {ast.unparse(right)}"
            found.append(Guard(part.lineno, text, smaller, larger, kind in (ast.Lt, ast.Gt), negated))
    return found


SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def _names(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
