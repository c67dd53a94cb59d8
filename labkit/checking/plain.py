"""Runs a learner's plain function of numbers, names and tuples, in a closed part of Python.

What is not listed here is refused with its line and what to write instead: no attribute but the facts of what the
function is given, no name but its own, and no call but of these functions and methods. So a stranger's function can do
nothing but answer, and answers alike whenever it is asked.
"""

import ast
import builtins
import difflib
import inspect
import numbers
import textwrap
import traceback
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any, TypeVar

from labkit.checking.own_text import borrowed
from labkit.simulator.errors import KernelError

Tree = TypeVar("Tree", bound=ast.AST)

MOST_ROUNDS = 200_000  # of all loops and calls that one question takes
MOST_PARTS = 200  # of an answer: all tuples in it count, and what they hold
MOST_LETTERS = 10_000
LARGEST = 2**200
FUNCTIONS = {
    one.__name__: one
    for one in (
        *(abs, all, any, bool, dict, divmod, enumerate, filter, float, frozenset, int, isinstance, len, list, map),
        *(max, min, next, repr, reversed, round, set, sorted, str, sum, tuple, zip),
    )
}
METHODS = {
    *("add", "append", "copy", "count", "endswith", "extend", "get", "index", "insert", "items", "join", "keys"),
    *("lower", "pop", "remove", "reverse", "setdefault", "sort", "split", "startswith", "strip", "update", "upper"),
    "values",
}
KNOWN = (
    *(ast.FunctionDef, ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Pass),
    *(ast.Break, ast.Continue, ast.Expr, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.JoinedStr),
    *(ast.FormattedValue, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple),
    *(ast.Slice, ast.arguments, ast.arg, ast.comprehension, ast.keyword),
    *(ast.expr_context, ast.boolop, ast.unaryop, ast.cmpop),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr),
)
REFUSED = {
    ast.Pow: "`**` is not known here; multiply instead",
    ast.LShift: "shifts are not known here; multiply instead",
    ast.Import: "an `import` is not needed here; use what the function is given",
    ast.ImportFrom: "an `import` is not needed here; use what the function is given",
    ast.Try: "`try` is not known here; ask with `if` before",
    ast.Raise: "an answer is returned; leave out `raise`",
    ast.Global: "each call stands alone; leave out `global`",
    ast.Nonlocal: "each call stands alone; leave out `nonlocal`",
}
INSTEAD = {  # of Python's own functions that are not known here
    "print": "what it prints would be seen nowhere; leave it out, or call your function outside of the check",
    "type": "ask with `isinstance`",
    "pow": "multiply instead",
}


def answers(function: Callable, calls: Iterable[tuple]) -> list[Any]:
    """What the function answers to each call.

    Raises
    ------
    KernelError
        It holds something that is not known here, or fails; the message names the line.
    """
    calls = list(calls)
    facts = set().union(*(facts_of(value) for call in calls for value in call))
    closed = _Closed(facts)
    answer = closed.function(function)
    found = []
    for call in calls:
        closed.rounds = 0
        try:
            found.append(answer(*call))
        except Exception as error:  # a check reports, whatever a learner's code does
            filename = function.__code__.co_filename
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
            line = frames[-1].lineno if frames and frames[-1].lineno else function.__code__.co_firstlineno
            raise KernelError(f"the run ended with {type(error).__name__}: {error}", line) from None
        if why := _no_answer(found[-1]):
            raise KernelError(why, function.__code__.co_firstlineno)
    return found


def _no_answer(answer: Any) -> str:
    """Why nothing can be done with an answer, in a sentence; "" where it is made of numbers and texts, and small."""
    parts = [answer]
    for part in parts:  # which grows
        if len(parts) > MOST_PARTS:
            return f"its answer has more than {MOST_PARTS} parts: return less"
        match part:
            case dict():
                parts += [*part, *part.values()]
            case tuple() | list() | set() | frozenset():
                parts += part
            case str() if len(part) > MOST_LETTERS:
                return f"its answer is a text of {len(part):,} letters: return a shorter one"
            case int() if abs(part) > LARGEST:
                return "its answer is a number of more than 200 bits: return a smaller one"
            case None | str() | int() | float():
                pass
            case _:
                return f"it answers with a {type(part).__name__}: return numbers and texts, or tuples and lists of them"
    return ""


def facts_of(value: Any) -> set[str]:
    """The names of what may be read of a value: fields and properties."""
    if isinstance(value, tuple):
        return set(getattr(value, "_fields", ())).union(*map(facts_of, value))
    if not is_dataclass(value):
        return set()
    properties = {name for name, kind in inspect.getmembers(type(value)) if isinstance(kind, property)}
    return {each.name for each in fields(value)} | {name for name in properties if name[0] != "_"}


class _Closed:
    """Functions, compiled anew so that they see nothing but what is listed."""

    def __init__(self, facts: set[str]):
        self.facts = facts
        self.rounds = 0
        self.made: dict[FunctionType, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        """The function, and the helpers that it calls, in the closed language."""
        if function in self.made:
            return self.made[function]
        definition = _definition(function)
        outer = _checked(definition, function, self.facts)
        for node in list(ast.walk(definition)):
            if isinstance(node, ast.FunctionDef | ast.For | ast.While):
                node.body.insert(0, _at(node, ast.Expr(_call("round__"))))
            if isinstance(node, ast.comprehension):
                node.iter = _at(node.iter, _call("rounds__", node.iter))
        scope: dict[str, Any] = {
            "__builtins__": {**FUNCTIONS, "range": self.range, "round__": self.round, "rounds__": self.each}
        }
        module = ast.fix_missing_locations(ast.Module([definition], []))
        exec(compile(module, function.__code__.co_filename, "exec"), scope)
        self.made[function] = scope[definition.name]
        for name, value in outer.items():
            scope[name] = self.function(value) if inspect.isfunction(value) else value
        return self.made[function]

    def round(self):
        """Counts a round of a loop, or a call."""
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            raise OverflowError(f"after {MOST_ROUNDS:,} rounds of its loops and calls it does not seem to end")

    def each(self, values):
        """The values, each of which counts as a round."""
        for value in values:
            self.round()
            yield value

    def range(self, *ends):
        """Python's range, if it is not very long."""
        found = range(*ends)
        if len(found) > MOST_ROUNDS:
            raise OverflowError(f"a range of more than {MOST_ROUNDS:,} numbers")
        return found


def _definition(function: FunctionType) -> ast.FunctionDef:
    """The text of a function, parsed: its own, whatever it may say that it wraps."""
    try:
        lines, first_line = inspect.getsourcelines(function.__code__)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, ValueError):
        definition = None
    if not isinstance(definition, ast.FunctionDef):
        raise KernelError(
            f"`{function.__name__}` is no function that begins with `def`: define it with `def` in its own lines",
            function.__code__.co_firstlineno,
        )
    ast.increment_lineno(definition, first_line - 1)
    definition.decorator_list, definition.returns = [], None
    for node in ast.walk(definition):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = _at(node.annotation, ast.Constant(""))
    return definition


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _at(place: ast.AST, tree: Tree) -> Tree:
    """The tree, all of which stands in the line of another."""
    for node in ast.walk(tree):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return tree


def _checked(definition: ast.FunctionDef, function: FunctionType, facts: set[str]) -> dict[str, Any]:
    """What the function takes from outside: numbers, texts and helpers; raises where it holds what is not known."""
    own = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)}
    outer = {}
    for node in ast.walk(definition):
        if why := _unknown(node, definition, facts):
            raise KernelError(why, getattr(node, "lineno", definition.lineno))
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id in own:
            continue
        if node.id in function.__globals__ or node.id not in {*FUNCTIONS, "range"}:
            outer[node.id] = _outside(node, function, own)
    return outer


def _unknown(node: ast.AST, definition: ast.FunctionDef, facts: set[str]) -> str:
    """Why a part of a function is not known here, in a sentence; "" where it is."""
    text = ast.unparse(node).splitlines()[0] if isinstance(node, ast.expr | ast.stmt) else type(node).__name__
    if not isinstance(node, KNOWN):
        return REFUSED.get(type(node), f"`{text}` is not known here; use `if`, `for`, numbers, names and tuples")
    match node:
        case ast.BinOp(op=sign) | ast.AugAssign(op=sign) if not isinstance(sign, KNOWN):
            return REFUSED.get(type(sign), f"`{text}` is not known here; use + - * / // %")
        case ast.FunctionDef() if node is not definition:
            return "a function inside the function is not known here; define it above"
        case ast.arguments() if node.vararg or node.kwarg or node.defaults or node.kwonlyargs or node.posonlyargs:
            return "parameters have no defaults and no stars here; keep those that the exercise came with"
        case ast.Name(id=name) | ast.arg(arg=name) if name.startswith("__") or name.endswith("__"):
            return f"`{name}` begins or ends with `__`, as Python's own names do; rename it"
        case ast.Attribute(ctx=ast.Load(), attr=name) if name not in facts | METHODS:
            close = difflib.get_close_matches(name, facts, 1)
            return f"`{text}` is not known here" + (f"; did you mean `{close[0]}`?" if close else "")
        case ast.Attribute(ctx=ast.Store()):
            return f"`{text}` cannot be assigned; use a name of your own"
        case ast.FormattedValue() if node.format_spec:
            return f"`{text}`: give no format behind the colon"
        case ast.Constant(value=value) if not isinstance(value, numbers.Real | str | None) and value is not ...:
            return f"`{text}` is not known here; use numbers and texts"
    return ""


def _outside(node: ast.Name, function: FunctionType, own: set[str]) -> Any:
    """The value of a name from outside of the function."""
    name = node.id
    if name not in function.__globals__ and hasattr(builtins, name):
        raise KernelError(f"`{name}` is not known here; {INSTEAD.get(name, 'do without it')}", node.lineno)
    if name not in function.__globals__:
        close = difflib.get_close_matches(name, own, 1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        raise KernelError(f"`{name}` is not defined here{hint}", node.lineno)
    value = function.__globals__[name]
    if inspect.isfunction(value):
        if wrong := borrowed(function, [value]):
            raise KernelError(wrong, node.lineno)
        return value
    if not _plain(value):
        raise KernelError(
            f"`{name}` is a {type(value).__name__}; only numbers, texts and tuples of them can be used from outside",
            node.lineno,
        )
    return value


def _plain(value: Any) -> bool:
    return all(map(_plain, value)) if type(value) is tuple else type(value) in (int, float, bool, str, type(None))
