"""What lets threads pass by a barrier: a `continue`, `break` or `return` before it, under a condition."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

OF_A_THREAD = ("cuda.threadIdx", "cuda.grid(", "cuda.laneid")
WORDS = {ast.Continue: "continue", ast.Break: "break", ast.Return: "return"}
LOOPS = ast.For | ast.While


@dataclass(frozen=True)
class Skip:
    """A statement that leaves the rest of a body out, the line of its condition, and what differs in that."""

    word: str
    line: int
    test_line: int
    names: tuple[str, ...]  # of the condition, those that are not the same in all threads

    @property
    def told(self) -> str:
        """A clause on the names; "" if there is none."""
        names = " and ".join(f"`{name}`" for name in self.names)
        differs = "differs" if len(self.names) == 1 else "differ"
        return f": {names} {differs} from thread to thread" if names else ""


def find_skip(kernel: ast.FunctionDef, line: int) -> Skip | None:
    """Return what lets threads pass by the barrier in a line, if that stands in no `if`; None if several can."""
    differing, found = _differing(kernel), []
    for test, statement in _skips(kernel.body, line) if _is_plain(kernel, line) else ():
        text = [n.id for n in ast.walk(test) if isinstance(n, ast.Name)]
        names = tuple(name for name in dict.fromkeys(text) if name in differing)
        if names or _reads_thread(test):
            found.append(Skip(WORDS[type(statement)], statement.lineno, test.lineno, names))
    return found[0] if len(found) == 1 else None


def _is_plain(kernel, line):
    """Return whether a line stands in loops alone: in no `if`, and in no `else` of a loop."""
    around = [n for n in ast.walk(kernel) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    inner = [n for n in around if n is not kernel]
    return bool(inner) and all(isinstance(n, ast.Expr | LOOPS) and not getattr(n, "orelse", None) for n in inner)


def _skips(body, line, in_loop=False) -> Iterator[tuple[ast.expr, ast.stmt]]:
    """Yield the conditions that end with such a statement, in the bodies around a line and before it."""
    around = next(s for s in body if s.lineno <= line <= (s.end_lineno or s.lineno))
    for statement in body[: body.index(around)]:
        match statement:
            case ast.If(test, [*_, ast.Return() | ast.Continue() | ast.Break() as last], []):
                if in_loop or isinstance(last, ast.Return):
                    yield test, last
    if isinstance(around, LOOPS):
        yield from _skips(around.body, line, in_loop=True)


def _differing(kernel) -> set[str]:
    """Return the variables that can differ from thread to thread, by how they are computed."""
    found: set[str] = set()
    pairs = list(_pairs(kernel))
    while True:
        more = {
            name.id
            for target, value in pairs
            if _reads_thread(value) or any(isinstance(n, ast.Name) and n.id in found for n in ast.walk(value))
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        } - found
        if not more:
            return found
        found |= more


def _pairs(kernel) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment or a loop with its value."""
    for node in ast.walk(kernel):
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                yield from zip(targets, values, strict=True)
            case ast.Assign([target], value) | ast.AugAssign(target, _, value) | ast.For(target, value):
                yield target, value


def _reads_thread(node):
    return any(word in ast.unparse(node) for word in OF_A_THREAD)
