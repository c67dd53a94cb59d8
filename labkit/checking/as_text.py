"""The reader of answers as grading takes them: definitions in the text of a cell, none of which runs."""

import ast
import difflib
import inspect
import linecache
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import shorten
from types import FunctionType
from typing import Any

from labkit.checking.definitions import read_definitions
from labkit.checking.exercise import Exercise
from labkit.checking.source import python_function
from labkit.rebinding import names_in, names_used_by, unset_globals
from labkit.simulator.language import suggest_import, suggest_name

MAX_CHARACTERS = 100_000  # of an answer
MAX_LINE_CHARACTERS = 80  # quoted in a message
MAX_NAMES = 8  # listed in a message
WHY = "for grading reads a cell and runs nothing of it"


@dataclass(frozen=True)
class Unreadable:
    """The reason why a text cannot be judged; `reason` is a word or two, as in a verdict."""

    reason: str
    message: str
    line: int | None = None


class AnswerReader:
    """Reads a chapter's setup cells, then the answers to its exercises one after the other.

    `namespace` has what all of them define.
    """

    def __init__(self, setups: Iterable[str]):
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        for number, text in enumerate(setups):
            self.namespace = read_definitions(text, f"<setup {number}>", self.namespace)

    def read(self, exercise: Exercise, text: str) -> Unreadable | None:
        """Add what the answer to an exercise defines; return the reason if it cannot be judged."""
        name, self.namespace = f"<{exercise.id}>", {**self.namespace, exercise.function: None}
        if len(text) > MAX_CHARACTERS:
            return Unreadable("too long", f"The answer has more than {MAX_CHARACTERS:,} characters: write less.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.namespace = read_definitions(text, name, self.namespace)
            return self._find_problem(exercise, ast.parse("".join(linecache.getlines(name))).body)
        except (SyntaxError, ValueError, RuntimeError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = f" in line {line}" if line else ""
            message = f"The cell fails{where}: {type(error).__name__}: {getattr(error, 'msg', error)}"
            return Unreadable("syntax", message, line)

    def _find_problem(self, exercise, statements):
        function = python_function(self.namespace[exercise.function])
        if function is None:
            return Unreadable("not a kernel", _explain_missing_function(exercise.function, statements))
        if not inspect.isfunction(function):
            return None
        return _find_unknown_value(function, statements) or _find_undefined_name(function, statements)


def collect_functions(function: FunctionType) -> Iterator[FunctionType]:
    """Yield a function, and those of the same text that it calls, directly or through others."""
    reached, queue = {function}, [function]
    for caller in queue:  # which grows
        yield caller
        for callee in map(python_function, names_used_by(caller).values()):
            is_of_text = inspect.isfunction(callee) and callee.__code__.co_filename == function.__code__.co_filename
            if is_of_text and callee not in reached:
                reached.add(callee)
                queue.append(callee)


def _explain_missing_function(name, statements):
    """Return the message on a text that does not define the function, or defines it so that it cannot be judged."""
    functions = [node for node in statements if isinstance(node, ast.FunctionDef)]
    bindings = [node for node in statements if name in bound_names(node)]
    if bindings and isinstance(bindings[-1], ast.FunctionDef):
        return f"{_describe_decorators(bindings[-1])}: keep the decorator that the exercise came with."
    if any(isinstance(node, ast.FunctionDef) for node in bindings):
        return f"Your cell defines `{name}` and then gives the name another value: leave that out."
    others = " and ".join(f"`{node.name}`" for node in functions[:MAX_NAMES])
    return f"Your cell defines no function `{name}`{f'; it defines {others}' if others else ''}."


def _describe_decorators(function):
    decorators = ", ".join(f"`{ast.unparse(decorator)}`" for decorator in function.decorator_list)
    return f"`{function.name}` is decorated with {shorten(decorators, MAX_LINE_CHARACTERS, placeholder='...')}"


def _find_unknown_value(function, statements):
    """Find the first name that the function reads and whose value is known only if the cell runs."""
    bindings = {name: node for node in statements for name in bound_names(node)}
    for reader in collect_functions(function):
        for name in sorted(name for name, value in names_used_by(reader).items() if value is None):
            if name not in bindings:
                message = f"The value of `{name}`, of an earlier cell, is not known, {WHY}; write the number itself."
                return Unreadable("refused", message)
            if not _assigns_none(bindings[name]):
                return Unreadable("refused", _explain_unknown_value(name, bindings[name]), bindings[name].lineno)
    return None


def _find_undefined_name(function, statements):
    """Find the first name that the function reads and nothing defines: misspelt, or of a cell that is not graded."""
    for reader in collect_functions(function):
        missing = unset_globals(reader)
        own = [node for node in statements if isinstance(node, ast.FunctionDef) and node.name == reader.__name__]
        reads = [node for root in own for node in ast.walk(root) if isinstance(node, ast.Name) and node.id in missing]
        if reads:
            first = min(reads, key=lambda node: (node.lineno, node.col_offset))
            advice = suggest_import(first.id)
            if first.id in _imported_names(statements):
                advice = ": the cell imports it from where grading imports nothing; do without it"
            elif not advice:
                defined = {name.lower(): name for name in [*reader.__globals__, *reader.__code__.co_varnames]}
                close = difflib.get_close_matches(first.id.lower(), defined, 1)
                advice = f" (did you mean `{defined[close[0]]}`?)" if close else suggest_name(first.id)
                advice += "; if another cell defines it, move that into this one, for grading reads the cells of "
                advice += "the exercises and the chapter's setup alone"
            message = f"Line {first.lineno}: `{first.id}` is not defined{advice}."
            return Unreadable("refused", message, first.lineno)
    return None


def _imported_names(statements):
    imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def bound_names(statement: ast.stmt) -> set[str]:
    """Return the names to which a statement of a cell gives a value."""
    return {statement.name} if isinstance(statement, ast.FunctionDef) else names_in(statement, ast.Store)


def _explain_unknown_value(name, statement):
    line = f"Line {statement.lineno}"
    if isinstance(statement, ast.FunctionDef):
        return f"{line}: {_describe_decorators(statement)}, which is not known here: a helper needs `cuda.jit`."
    text = shorten(ast.unparse(statement).splitlines()[0], MAX_LINE_CHARACTERS, placeholder="...")
    numbers = _write_as_tuple(statement)
    cure = f"a tuple, `{name} = {numbers}`" if numbers else "the number itself"
    return f"{line}, `{text}`: the value of `{name}` is not known, {WHY}; write {cure}."


def _write_as_tuple(statement):
    """Return the text of a tuple for a name that is given a list, or a NumPy array of one; "" for all else."""
    match statement:
        case ast.Assign([ast.Name()], ast.List(numbers)):
            dtypes = []
        case ast.Assign(
            [ast.Name()],
            ast.Call(
                ast.Attribute(attr="array" | "asarray"), [ast.List(numbers) | ast.Tuple(numbers), *dtypes], keywords
            ),
        ):
            dtypes = dtypes + [keyword.value for keyword in keywords if keyword.arg == "dtype"]
        case _:
            return ""
    numbers = [ast.Call(dtypes[0], [number], []) if dtypes else number for number in numbers]
    text = ast.unparse(ast.Tuple(numbers))
    return text if len(text) <= MAX_LINE_CHARACTERS else f"({ast.unparse(numbers[0])}, ...)"


def _assigns_none(statement):
    return isinstance(getattr(statement, "value", None), ast.Constant) and statement.value.value is None
