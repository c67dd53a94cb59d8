"""A function's source: its text, its syntax tree, the values of its free names."""

import ast
import inspect
import linecache
import re
import textwrap
import tokenize
import unicodedata
from copy import deepcopy
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from labkit.simulator.errors import KernelError
from labkit.simulator.limits import MAX_CHARACTERS
from labkit.simulator.reading.aliases import expand_aliases
from labkit.simulator.reading.folding import fold_constants
from labkit.simulator.reading.inner import as_function, free_variables, inner_functions, named
from labkit.simulator.reading.syntax import walk
from labkit.simulator.reading.trusted import Device, trusted


@dataclass(frozen=True)
class Source:
    """A function's text, and its syntax tree with the lines of the file or cell.

    Constant expressions are folded in the tree (`folding`).
    """

    text: str
    filename: str
    first_line: int
    tree: ast.FunctionDef
    is_inner: bool = False  # it is defined inside another function
    free: tuple[str, ...] = ()  # that function's variables that it reads, as further arguments


_sources: WeakKeyDictionary = WeakKeyDictionary()
_inner: WeakKeyDictionary = WeakKeyDictionary()  # inner functions, by the outer one
_named: WeakKeyDictionary = WeakKeyDictionary()  # those with a name, as values


def read_source(function: FunctionType, position: tuple[int, int] | None = None) -> Source:
    """Return the source of a Python function, as it was first read; raise KernelError where it cannot be read.

    All of it gets the line and column `position`, where these are given.
    """
    if function not in _sources:
        _sources[function] = _read(function)
    return _sources[function] if position is None else _at_position(_sources[function], position)


def _at_position(source, position):
    tree = deepcopy(source.tree)
    for node in walk(tree):
        if hasattr(node, "lineno"):
            node.own_place = node.lineno, node.col_offset
            node.lineno, node.col_offset = position
            node.end_lineno = position[0]
    return replace(source, tree=tree)


def written_as(function: FunctionType, other: FunctionType) -> FunctionType:
    """Return a function that calls `other` as if it stood at its `def`, with the arguments' names from there.

    Findings of a ready-made kernel then show the lines and names of the function that it runs.
    """
    source, place, code = read_source(function), read_source(other), function.__code__
    names = argument_names(place)
    for name in code.co_varnames[len(names) :]:
        while name in names:
            name += "_"
        names.append(name)
    new_names = dict(zip(code.co_varnames, names))
    tree = _at_position(source, (place.tree.lineno, place.tree.col_offset)).tree
    for node in walk(tree):
        if isinstance(node, ast.Name):
            node.id = new_names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = new_names[node.arg]
    code = code.replace(co_varnames=tuple(names))
    moved = FunctionType(code, function.__globals__, other.__name__, None, function.__closure__)
    _sources[moved] = replace(place, tree=tree)
    return moved


def own_place(node) -> tuple[int, int]:
    """Return the line and column of a node in its own file, even if `read_source` moved it."""
    return getattr(node, "own_place", (node.lineno, node.col_offset))


def _read(function):
    code = function.__code__
    try:
        linecache.checkcache(code.co_filename)
        if code.co_filename == "<string>":  # Python 3.13 would give the text of `python -c`
            raise OSError
        first = code.co_firstlineno
        lines = linecache.getlines(code.co_filename) or inspect.findsource(code)[0]  # the second asks every module
        text = textwrap.dedent("".join(inspect.getblock(lines[first - 1 :])))
        if len(text) > MAX_CHARACTERS:
            raise KernelError("this function is too long to simulate; write what repeats as a loop", first)
        tree = ast.parse(text).body[0]
        tree = fold_constants(_lambda_in(tree, code) if code.co_name == "<lambda>" else tree)
        tree = expand_aliases(tree, _values_outside(function))
    except (OSError, TypeError, IndexError, tokenize.TokenError):
        raise KernelError(
            f"the source of `{function.__name__}` cannot be read: write the kernel in a file or a notebook cell, "
            "not in a string given to exec",
            code.co_firstlineno,
        ) from None
    except (SyntaxError, ValueError):
        raise _changed_error(code) from None
    except (RecursionError, MemoryError):
        raise KernelError("this function is nested too deeply; split it into several", code.co_firstlineno) from None
    if isinstance(tree, ast.AsyncFunctionDef):
        raise KernelError("a kernel is a plain function written with `def`; leave `async` out", first)
    if not isinstance(tree, ast.FunctionDef) or not _matches(text, tree, code):
        raise _changed_error(code)
    ast.increment_lineno(tree, first - 1)
    return Source(text, code.co_filename, first, tree)


def _lambda_in(statement: ast.stmt, code: CodeType) -> ast.FunctionDef:
    """Return the one lambda of a statement, as a function; raise KernelError where there are several."""
    lambdas = [n for n in walk(statement) if isinstance(n, ast.Lambda)]
    if len(lambdas) != 1:
        raise KernelError(
            "which of the lambdas in this line is meant cannot be told; write a function with `def`",
            code.co_firstlineno,
        )
    return as_function(lambdas[0])


def _changed_error(code: CodeType) -> KernelError:
    return KernelError(
        f"the source of `{code.co_name}` is no longer what it was when Python read it; run its cell or import it again",
        code.co_firstlineno,
    )


def _matches(text: str, tree: ast.FunctionDef, code: CodeType) -> bool:
    """Return whether the text belongs to the code: the same name and arguments, and all names that the code uses."""
    arguments = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args)]
    used = {*code.co_varnames}
    if not any(isinstance(n, ast.Assert) for n in walk(tree)):  # pytest rewrites those
        used |= {*code.co_names}
    written = set(re.findall(r"\w+", unicodedata.normalize("NFKC", text)))
    same = code.co_name in (tree.name, "<lambda>") and arguments == [*code.co_varnames[: code.co_argcount]]
    return same and {name for name in used if name.isidentifier()} <= written


def argument_names(source: Source) -> list[str]:
    """Return the names of a kernel's arguments; raise KernelError unless they are plain positional ones."""
    arguments = source.tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        raise KernelError(
            "a kernel takes plain positional arguments, without `*` or `**`; name each one", source.tree.lineno
        )
    return [*(a.arg for a in (*arguments.posonlyargs, *arguments.args)), *source.free]


def inner_function(function: FunctionType, node: ast.AST) -> FunctionType | None:
    """Return the function that a node inside a function defines; None for another node."""
    found = _inner_functions(function).get(own_place(node))
    return found and found[1]


def _inner_functions(function):
    if function not in _inner:
        outer = read_source(function)
        found = inner_functions(function, outer.tree, _values_outside(function)) if _holds_code(function) else {}
        _inner[function] = found
        for node, inner in found.values():
            _sources[inner] = replace(outer, tree=as_function(node), is_inner=True, free=())
        for _, inner in found.values():
            _sources[inner] = replace(_sources[inner], free=tuple(free_variables(inner)))
    return _inner[function]


def captured_values(function: FunctionType) -> dict[str, Any]:
    """Return the current values of a function's free names: globals, closure cells over them, and inner functions."""
    if function not in _named:
        nodes = named(read_source(function).tree) if _holds_code(function) else {}
        _named[function] = {name: Device(inner_function(function, node)) for name, node in nodes.items()}
    return _values_outside(function) | _named[function]


def _holds_code(function):
    """Return whether a function may define others."""
    return any(isinstance(constant, CodeType) for constant in function.__code__.co_consts)


def _values_outside(function):
    code, globals_ = function.__code__, function.__globals__
    names = {name: trusted(dict.__getitem__(globals_, name)) for name in code.co_names if name in dict.keys(globals_)}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            names[name] = trusted(cell.cell_contents)
        except ValueError:
            continue
    return names


def python_function(value):
    """Return the Python function behind what `cuda.jit` returned, or None."""
    found = trusted(value)
    return found.py_func if isinstance(found, Device) else None
