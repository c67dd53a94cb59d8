"""Names that functions use: their values, the sources of these, and copies of functions with other values."""

import ast
import builtins
import dis
import sys
from collections.abc import Set
from functools import cache, lru_cache
from inspect import getfile
from linecache import getlines
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType


def names_used_by(function) -> dict:
    """Return the globals and closure variables that a function uses, with their values."""
    code = function.__code__
    values = {name: function.__globals__[name] for name in _globals_of(code) if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        values[name] = _contents(cell)
    return values


def unset_globals(function) -> set[str]:
    """Return the globals that a function reads and that have no value."""
    return {*_globals_of(function.__code__)} - function.__globals__.keys() - vars(builtins).keys()


@lru_cache(1024)  # bounded, since a notebook's cells run many times
def _globals_of(code: CodeType) -> frozenset[str]:
    loaded = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    nested = (_globals_of(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(loaded.union(*nested))


def _contents(cell: CellType):
    try:
        return cell.cell_contents
    except ValueError:  # assigned later
        return None


def assignments(source: str, names: Set[str]) -> list[ast.Assign]:
    """Return the top-level assignments of a source that set names, or set names from which these are computed."""
    nodes = []
    for node, assigned in reversed(_all_assignments(source)):
        if names & assigned:
            names = names | names_in(node)
            nodes.insert(0, node)
    return nodes


@lru_cache(64)
def _all_assignments(source: str) -> list[tuple[ast.Assign, set[str]]]:
    """Return all top-level assignments of a source, each with the names that it sets."""
    return [(node, names_in(node, ast.Store)) for node in ast.parse(source).body if isinstance(node, ast.Assign)]


def names_in(tree: ast.AST, context: type = ast.Load) -> set[str]:
    """Return the names that a tree reads, or with `ast.Store` those that it assigns."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


@cache
def imports(module: ModuleType) -> dict[str, tuple[ModuleType, str]]:
    """Return the names that a module imports from labkit's modules, each with its module and its name there."""
    body = ast.parse(Path(getfile(module)).read_text(encoding="utf-8")).body
    lines = [(str(line.module), line.names) for line in body if isinstance(line, ast.ImportFrom)]
    homes = [(sys.modules[source], names) for source, names in lines if source.startswith("labkit.")]
    return {name.asname or name.name: (home, name.name) for home, names in homes for name in names}


def recompute(function, constants: dict) -> tuple[dict, set[str]]:
    """Return constants with all values that a function's file derives from them, and the names that it reads."""
    values, sources, filename = dict(constants), set(), function.__code__.co_filename
    for node in assignments("".join(getlines(filename)), _globals_of(function.__code__)):
        sources |= names_in(node)
        if names_in(node) & values.keys():
            scope = {**function.__globals__, **values}
            exec(compile(ast.Module([node], []), filename, "exec"), scope)
            values |= {name: scope[name] for name in names_in(node, ast.Store) & scope.keys() - constants.keys()}
    return values, sources


def rebuild(function, changes: dict):
    """Copy a function, with other values for some of its globals and closure variables."""
    cells = tuple(
        CellType(changes[name]) if name in changes else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    copy = FunctionType(
        function.__code__, {**function.__globals__, **changes}, function.__name__, function.__defaults__, cells or None
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = dict(function.__annotations__)
    copy.__qualname__, copy.__doc__ = function.__qualname__, function.__doc__
    return copy
