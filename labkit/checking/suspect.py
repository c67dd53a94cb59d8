"""The line that a wrong result is blamed on: only where one line alone can hold the mistake.

All statements that lead to what is stored are collected. Those that are written alike in every kernel (the index of a
thread, a guard, a sum that begins at 0) are left out. If one is left, the mistake is there; else no line is blamed.
"""

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from labkit.checking.source import read_lines
from labkit.rebinding import names_in
from labkit.trace import Finding

TELLING = ("negative-index", "float-range", "changed-global")  # advice that explains a wrong result
PLAIN_CALLS = {"range", "len", "min", "max", "abs", "int", "float", "bool", "round"}  # of which the code is not theirs
NAME = r"[A-Za-z_]\w*"
SIZE = rf"(?:{NAME}(?:\.shape\[\d\]|\.size)?|len\({NAME}\))"
INDEX = rf"\[\(?(?:{NAME}|0)(?:, (?:{NAME}|0))*\)?\]"
ZERO = r"(?:0|0\.0|(?:np\.)?(?:float|int)\d\d\(0(?:\.0)?\))"
THREAD = r"cuda\.(?:threadIdx|blockIdx|blockDim|gridDim)(?:\.[xyz])?|cuda\.(?:grid|gridsize)\([123]\)|cuda\.laneid"
FLAT_INDEX = "|".join(rf"cuda\.blockIdx\.{axis} \* cuda\.blockDim\.{axis} \+ cuda\.threadIdx\.{axis}" for axis in "xyz")
VALUE = rf"(?:{THREAD}|{FLAT_INDEX}|{SIZE}|{NAME}\.shape|{ZERO}|cuda\.(?:shared|local)\.array\(.*\))"
TEST = rf"{SIZE} (?:<|>=) {SIZE}"
USUAL = (
    rf"\(?{NAME}(?:, {NAME})*\)? = \(?{VALUE}(?:, {VALUE})*\)?",  # row, col = cuda.grid(2)
    rf"{NAME}{INDEX} = (?:{NAME}|{ZERO})",  # C[row, col] = total
    rf"for {NAME} in range\((?:{NAME}|0, {NAME}, {NAME})\):",
    rf"if {TEST}(?: (?:and|or) {TEST})*:",  # a guard: if it is wrong, elements are not written
)


@dataclass(frozen=True)
class Suspicion:
    """The line that is blamed, None if several may hold the mistake; and the simulator's advice on the way, or ""."""

    line: int | None = None
    told: str = ""


def find_suspect(function: Callable, array: str, findings: Iterable[Finding]) -> Suspicion:
    """Find the one line that can have made an array's wrong elements.

    Parameters
    ----------
    array
        The array's name in the function.
    findings
        Those of the run.
    """
    try:
        lines, first_line = read_lines(function.__code__)
        kernel = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError):
        return Suspicion()
    if not isinstance(kernel, ast.FunctionDef):
        return Suspicion()
    statements = _slice(kernel, array)
    spans = {s: range(first_line + s.lineno - 1, first_line + _last_line(s)) for s in statements}
    told = [f.message for f in findings if f.kind in TELLING and any(f.line in span for span in spans.values())]
    unusual = {span.start for statement, span in spans.items() if not _is_usual(statement)}
    is_known = not any(_calls_own_code(statement) or _adds_to(statement, array) for statement in statements)
    return Suspicion(unusual.pop() if is_known and len(unusual) == 1 else None, told[0] if told else "")


def _slice(kernel: ast.FunctionDef, array: str) -> list[ast.stmt]:
    """Return the statements on which the elements of an array depend."""
    defined: dict[str, list[ast.stmt]] = {}
    around: dict[ast.stmt, tuple[ast.stmt, ...]] = {}
    for statement, outer in _walk(kernel.body, ()):
        around[statement] = outer
        for name in _names_set(statement):
            defined.setdefault(name, []).append(statement)
    found: dict[ast.stmt, None] = {}
    names, done = [array], set()
    while names:
        name = names.pop()
        if name in done:
            continue
        done.add(name)
        for statement in defined.get(name, ()):
            for each in (statement, *around[statement]):
                found[each] = None
                names += [read for part in _parts(each) for read in names_in(part)]
    return list(found)


def _walk(body, outer) -> Iterator[tuple[ast.stmt, tuple[ast.stmt, ...]]]:
    """Yield each statement, and those around it."""
    for statement in body:
        yield statement, outer
        inside = (*outer, statement)
        for name in ("body", "orelse"):
            yield from _walk(getattr(statement, name, ()), inside)


def _parts(statement) -> list[ast.AST]:
    """Return the statement without the statements inside it."""
    if isinstance(statement, ast.For):
        return [statement.target, statement.iter]
    if isinstance(statement, ast.If | ast.While):
        return [statement.test]
    return [statement]


def _names_set(statement) -> set[str]:
    """Return the names that a statement sets, arrays to which it stores or which it hands over among them."""
    nodes = [node for part in _parts(statement) for node in ast.walk(part)]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    stored = [node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    names |= {name for node in stored for name in names_in(node.value)}
    if isinstance(statement, ast.Expr):
        names |= {
            arg.id for node in nodes if isinstance(node, ast.Call) for arg in node.args if isinstance(arg, ast.Name)
        }
    return names


def _last_line(statement):
    return max(getattr(node, "end_lineno", statement.lineno) for node in _parts(statement))


def _is_usual(statement):
    head = ast.unparse(statement).partition("\n")[0]
    has_choice = bool(getattr(statement, "orelse", None))  # between two values
    return not has_choice and any(re.fullmatch(usual, head) for usual in USUAL)


def _calls_own_code(statement):
    calls = [node for part in _parts(statement) for node in ast.walk(part) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id not in PLAIN_CALLS for call in calls)


def _adds_to(statement, array):
    """Tell whether a statement changes elements in place: then the line that should have set them first may be gone."""
    return isinstance(statement, ast.AugAssign) and array in _names_set(statement)
