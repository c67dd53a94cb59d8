"""An answer as grading reads it: what the text of its cell defines, of which nothing runs."""

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

from labkit.checking.definitions import definitions
from labkit.checking.exercise import Exercise
from labkit.checking.source import python_function
from labkit.rebinding import names_in, names_used_by, unset_globals
from labkit.simulator.language import nearest

MOST_CHARACTERS = 100_000  # of an answer
MOST_SHOWN = 80  # of a line
MOST_NAMED = 8
WHY = "for grading reads a cell and runs nothing of it"


@dataclass(frozen=True)
class Unreadable:
    """Why there is nothing in a text to judge; `reason` is a word or two, as in a verdict."""

    reason: str
    message: str
    line: int | None = None


class Texts:
    """What a chapter's setup cells define, and the answers that are read one after the other."""

    def __init__(self, setups: Iterable[str]):
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        for number, text in enumerate(setups):
            self.namespace = definitions(text, f"<setup {number}>", self.namespace)

    def read(self, rules: Exercise, text: str) -> Unreadable | None:
        """Take up what the answer to an exercise defines; says what keeps it from being read."""
        name, self.namespace = f"<{rules.id}>", {**self.namespace, rules.function: None}
        if len(text) > MOST_CHARACTERS:
            return Unreadable("too long", f"The answer has more than {MOST_CHARACTERS:,} characters: write less.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.namespace = definitions(text, name, self.namespace)
            return self._complaint(rules, ast.parse("".join(linecache.getlines(name))).body)
        except (SyntaxError, ValueError, RuntimeError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            place = f" in line {line}" if line else ""
            message = f"The cell fails{place}: {type(error).__name__}: {getattr(error, 'msg', error)}"
            return Unreadable("syntax", message, line)

    def _complaint(self, rules, statements):
        """What keeps what was read from being judged."""
        function = python_function(self.namespace[rules.function])
        if function is None:
            return Unreadable("not a kernel", _no_function(rules.function, statements))
        if not inspect.isfunction(function):
            return None
        return _unknown(function, statements) or _undefined(function, statements)


def functions_of(function: FunctionType) -> Iterator[FunctionType]:
    """A function, and those of the same text that it calls, and that these call."""
    found, waiting = {function}, [function]
    for one in waiting:  # which grows
        yield one
        for each in map(python_function, names_used_by(one).values()):
            own = inspect.isfunction(each) and each.__code__.co_filename == function.__code__.co_filename
            if own and each not in found:
                found.add(each)
                waiting.append(each)


def _no_function(name, statements):
    """What to say of a text in which a function is not, or not as one that can be judged."""
    defined = [node for node in statements if isinstance(node, ast.FunctionDef)]
    given = [node for node in statements if name in names_given(node)]
    if given and isinstance(given[-1], ast.FunctionDef):
        return f"{_decorated(given[-1])}: keep the decorator that the exercise came with."
    if any(isinstance(node, ast.FunctionDef) for node in given):
        return f"Your cell defines `{name}` and then gives the name another value: leave that out."
    others = " and ".join(f"`{node.name}`" for node in defined[:MOST_NAMED])
    return f"Your cell defines no function `{name}`{f'; it defines {others}' if others else ''}."


def _decorated(function):
    decorators = ", ".join(f"`{ast.unparse(one)}`" for one in function.decorator_list)
    return f"`{function.name}` is decorated with {shorten(decorators, MOST_SHOWN, placeholder='...')}"


def _unknown(function, statements):
    """The first name that the function reads and whose value only running the cell would tell."""
    given = {name: node for node in statements for name in names_given(node)}
    for one in functions_of(function):
        for name in sorted(name for name, value in names_used_by(one).items() if value is None):
            if name not in given:
                message = f"The value of `{name}`, of an earlier cell, is not known, {WHY}; write the number itself."
                return Unreadable("refused", message)
            if not _is_none(given[name]):
                return Unreadable("refused", _not_known(name, given[name]), given[name].lineno)
    return None


def _undefined(function, statements):
    """The first name that the function reads and nothing defines: misspelt, or of a cell that grading does not read."""
    for one in functions_of(function):
        missing = unset_globals(one)
        own = [node for node in statements if isinstance(node, ast.FunctionDef) and node.name == one.__name__]
        reads = [node for root in own for node in ast.walk(root) if isinstance(node, ast.Name) and node.id in missing]
        if reads:
            first = min(reads, key=lambda node: (node.lineno, node.col_offset))
            known = {name.lower(): name for name in [*one.__globals__, *one.__code__.co_varnames]}
            close = difflib.get_close_matches(first.id.lower(), known, 1)
            hint = f" (did you mean `{known[close[0]]}`?)" if close else nearest(first.id)
            message = (
                f"Line {first.lineno}: `{first.id}` is not defined{hint}; if another cell defines it, move that into "
                "this one, for grading reads the cells of the exercises and the chapter's setup alone."
            )
            return Unreadable("refused", message, first.lineno)
    return None


def names_given(statement: ast.stmt) -> set[str]:
    """The names to which a statement of a cell gives a value."""
    return {statement.name} if isinstance(statement, ast.FunctionDef) else names_in(statement, ast.Store)


def _not_known(name, statement):
    if isinstance(statement, ast.FunctionDef):
        return f"Line {statement.lineno}: {_decorated(statement)}, which is not known here: a helper needs `cuda.jit`."
    written = shorten(ast.unparse(statement).splitlines()[0], MOST_SHOWN, placeholder="...")
    return f"Line {statement.lineno}, `{written}`: the value of `{name}` is not known, {WHY}; write the number itself."


def _is_none(statement):
    return isinstance(getattr(statement, "value", None), ast.Constant) and statement.value.value is None
