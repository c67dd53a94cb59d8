"""A restricted Python in which a learner's plain function of numbers, names and tuples runs safely.

All that is not listed here is refused, with its line and what to write instead. A function may read the fields and
properties of its arguments, use its own names, and call these functions and methods. So a stranger's function can only
compute an answer, the same at each call.
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
from typing import Any

from labkit.checking.in_child import Allowance, TooMuch, run_in_child
from labkit.checking.own_code import find_foreign_helper
from labkit.checking.source import read_lines
from labkit.checking.work import SIGNS, TooMuchWork, Work, insert_hooks, set_line
from labkit.simulator.errors import KernelError

MAX_PARTS = 200  # of an answer: all tuples in it, and their elements
MAX_LETTERS = 10_000
MAX_ERROR_LETTERS = 200
MAX_INTEGER = 2**200
FUNCTIONS = {
    function.__name__: function
    for function in (
        *(abs, all, any, bool, dict, divmod, enumerate, filter, float, frozenset, int, isinstance, len, list, map),
        *(max, min, next, repr, reversed, round, set, sorted, str, sum, tuple, zip),
    )
}
METHODS = {
    *("add", "append", "bit_length", "copy", "count", "endswith", "extend", "get", "index", "insert", "items", "join"),
    "keys",
    *("lower", "pop", "remove", "reverse", "setdefault", "sort", "split", "startswith", "strip", "update", "upper"),
    "values",
}
ALLOWED_NODES = (
    *(
        ast.FunctionDef,
        ast.Return,
        ast.Assert,
        ast.Assign,
        ast.AnnAssign,
        ast.AugAssign,
        ast.For,
        ast.While,
        ast.If,
        ast.Pass,
    ),
    *(ast.Break, ast.Continue, ast.Expr, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.JoinedStr),
    *(ast.FormattedValue, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple),
    *(ast.Slice, ast.arguments, ast.arg, ast.comprehension, ast.keyword),
    *(ast.expr_context, ast.boolop, ast.unaryop, ast.cmpop),
    *SIGNS,
)
REFUSED = {
    ast.LShift: "shifts are not known here; multiply by `2 ** n`",
    ast.RShift: "shifts are not known here; divide by `2 ** n` with `//`",
    ast.Import: "an `import` is not needed here; use what the function is given",
    ast.ImportFrom: "an `import` is not needed here; use what the function is given",
    ast.Try: "`try` is not known here; ask with `if` before",
    ast.Raise: "`raise` is not known here; return an answer, or write `assert`",
    ast.Global: "each call stands alone; leave out `global`",
    ast.Nonlocal: "`nonlocal` is not known here; return the value",
}
ADVICE_ON_BUILTINS = {  # what to do without some of Python's own functions
    "print": "what it prints would be seen nowhere; leave it out, or call your function outside of the check",
    "type": "ask with `isinstance`",
    "pow": "write `**`",
}


def run_calls(function: Callable, calls: Iterable[tuple], allowance: Allowance | None = None) -> list[Any]:
    """Return the function's answer to each call; all of them are made in a child process.

    Parameters
    ----------
    calls
        The arguments of each call.
    allowance
        The CPU time that may be used, here and in other runs with the same allowance.

    Raises
    ------
    KernelError
        The function holds something that is refused here, or fails; the message names the line.
    """
    calls = list(calls)
    attributes = set().union(*(readable_attributes(value) for call in calls for value in call))
    language = _Restricted(attributes)
    answer = language.compile(function)
    first_line = function.__code__.co_firstlineno

    def answer_all() -> tuple[list[Any], str, int]:
        """Return the answers and ""; or else no answers, and the reason and line of the first failure."""
        answers = []
        for call in calls:
            language.work.rounds = 0
            try:
                answers.append(answer(*call))
            except MemoryError:
                raise
            except Exception as error:  # a check reports, whatever a learner's code does
                filename = function.__code__.co_filename
                frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
                line = frames[-1].lineno if frames and frames[-1].lineno else first_line
                if isinstance(error, TooMuchWork):
                    return [], str(error), line
                words = f": {error}"[:MAX_ERROR_LETTERS] if str(error) else ""
                return [], f"the run ended with {type(error).__name__}{words}", line
            if why := _find_bad_answer(answers[-1]):
                return [], why, first_line
        return answers, "", first_line

    try:
        answers, why, line = run_in_child(answer_all, allowance or Allowance())
    except TooMuch as error:
        raise KernelError(f"the function needs {error}: make it smaller or simpler", first_line) from None
    if why:
        raise KernelError(why, line)
    return answers


def _find_bad_answer(answer: Any) -> str:
    """Return a sentence on an answer that cannot be judged, "" if it is small and made of numbers and texts."""
    parts = [answer]
    for part in parts:  # which grows
        if len(parts) > MAX_PARTS:
            return f"its answer has more than {MAX_PARTS} parts: return less"
        match part:
            case dict():
                parts += [*part, *part.values()]
            case tuple() | list() | set() | frozenset():
                parts += part
            case str() if len(part) > MAX_LETTERS:
                return f"its answer is a text of {len(part):,} letters: return a shorter one"
            case int() if abs(part) > MAX_INTEGER:
                return "its answer is a number of more than 200 bits: return a smaller one"
            case None | str() | int() | float():
                pass
            case _:
                return f"it answers with a {type(part).__name__}: return numbers and texts, or tuples and lists of them"
    return ""


def readable_attributes(value: Any) -> set[str]:
    """Return the names of a value's attributes that a function may read: fields and properties."""
    if isinstance(value, tuple):
        return set(getattr(value, "_fields", ())).union(*map(readable_attributes, value))
    if not is_dataclass(value):
        return set()
    properties = {name for name, kind in inspect.getmembers(type(value)) if isinstance(kind, property)}
    return {field.name for field in fields(value)} | {name for name in properties if name[0] != "_"}


class _Restricted:
    """Functions compiled so that they see only what is listed, and count their work."""

    def __init__(self, attributes: set[str]):
        self.attributes = attributes
        self.work = Work()
        self.compiled: dict[FunctionType, FunctionType] = {}

    def compile(self, function: FunctionType) -> FunctionType:
        """Compile a function, and the helpers that it calls, in the restricted language."""
        if function in self.compiled:
            return self.compiled[function]
        definition = _parse_function(function)
        outside_values = _check_function(definition, function, self.attributes)
        helpers = {name: value for name, value in outside_values.items() if inspect.isfunction(value)}
        insert_hooks(definition, helpers)
        scope: dict[str, Any] = {"__builtins__": {**FUNCTIONS, **self.work.hooks}}
        module = ast.fix_missing_locations(ast.Module([definition], []))
        exec(compile(module, function.__code__.co_filename, "exec"), scope)
        self.compiled[function] = scope[definition.name]
        scope |= outside_values
        scope |= {name: self.compile(helper) for name, helper in helpers.items()}
        return self.compiled[function]


def _parse_function(function: FunctionType) -> ast.FunctionDef:
    """Parse the text of a function itself, not of one that it says it wraps."""
    try:
        lines, first_line = read_lines(function.__code__)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, ValueError):
        definition = None
    if not isinstance(definition, ast.FunctionDef):
        raise KernelError(
            f"`{function.__name__}` does not begin with `def`: define it with `def` in its own lines",
            function.__code__.co_firstlineno,
        )
    ast.increment_lineno(definition, first_line - 1)
    definition.decorator_list = []
    for node in ast.walk(definition):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = set_line(node.annotation, ast.Constant(""))
    return definition


def _check_function(definition: ast.FunctionDef, function: FunctionType, attributes: set[str]) -> dict[str, Any]:
    """Return the outside values that a function reads (numbers, texts, helpers); raise if it holds what is refused."""
    own = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)}
    own |= {node.name for node in ast.walk(definition) if isinstance(node, ast.FunctionDef) and node is not definition}
    outside_values = {}
    for node in ast.walk(definition):
        if why := _find_refused(node, definition, attributes):
            raise KernelError(why, getattr(node, "lineno", definition.lineno))
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id in own:
            continue
        if node.id in function.__globals__ or node.id not in {*FUNCTIONS, "range"}:
            outside_values[node.id] = _read_outside_value(node, function, own)
    return outside_values


def _find_refused(node: ast.AST, definition: ast.FunctionDef, attributes: set[str]) -> str:
    """Return a sentence on a part of a function that is refused, "" if it is allowed."""
    text = ast.unparse(node).splitlines()[0] if isinstance(node, ast.expr | ast.stmt) else type(node).__name__
    if not isinstance(node, ALLOWED_NODES):
        return REFUSED.get(type(node), f"`{text}` is not known here; use `if`, `for`, numbers, names and tuples")
    match node:
        case ast.BinOp(op=sign) | ast.AugAssign(op=sign) if not isinstance(sign, ALLOWED_NODES):
            return REFUSED.get(type(sign), f"`{text}` is not known here; use + - * ** / // %")
        case ast.FunctionDef(decorator_list=[_, *_]):
            return f"`@` above `{node.name}` is not known here; leave it out"
        case ast.FunctionDef(args=args) | ast.Lambda(args=args) if _are_more_than_names(args):
            cure = "keep those that the exercise came with" if node is definition else "give each value in the call"
            return f"parameters have no defaults and no stars here; {cure}"
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) if name.startswith(
            "__"
        ) or name.endswith("__"):
            return f"`{name}` begins or ends with `__`, as Python's own names do; rename it"
        case ast.Attribute(ctx=ast.Load(), attr=name) if name not in attributes | METHODS:
            close = difflib.get_close_matches(name, attributes, 1)
            return f"`{text}` is not known here" + (f"; did you mean `{close[0]}`?" if close else "")
        case ast.Attribute(ctx=ast.Store()):
            return f"`{text}` cannot be assigned; use a name of your own"
        case ast.FormattedValue() if node.format_spec:
            return f"`{text}`: give no format behind the colon"
        case ast.Constant(value=value) if not isinstance(value, numbers.Real | str | None) and value is not ...:
            return f"`{text}` is not known here; use numbers and texts"
    return ""


def _are_more_than_names(parameters: ast.arguments) -> bool:
    stars = parameters.vararg or parameters.kwarg or parameters.kwonlyargs or parameters.posonlyargs
    return bool(stars or parameters.defaults)


def _read_outside_value(node: ast.Name, function: FunctionType, own: set[str]) -> Any:
    """Return the value of a name from outside of the function; raise if it may not be used."""
    name = node.id
    if name not in function.__globals__ and hasattr(builtins, name):
        raise KernelError(f"`{name}` is not known here; {ADVICE_ON_BUILTINS.get(name, 'do without it')}", node.lineno)
    if name not in function.__globals__:
        close = difflib.get_close_matches(name, own, 1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        raise KernelError(f"`{name}` is not defined here{hint}", node.lineno)
    value = function.__globals__[name]
    if inspect.isfunction(value):
        if complaint := find_foreign_helper(function, [value]):
            raise KernelError(complaint, node.lineno)
        return value
    if not _is_plain(value):
        raise KernelError(
            f"`{name}` is a {type(value).__name__}; only numbers, texts and tuples of them can be used from outside",
            node.lineno,
        )
    return value


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in (int, float, bool, str, type(None))
