"""Copies of functions that see other values under the names they use."""

import dis
from types import CellType, CodeType, FunctionType


def names_of(function) -> dict:
    """The globals and closure variables that a function uses, with their values."""
    code = function.__code__
    found = {name: function.__globals__[name] for name in _globals_of(code) if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        found[name] = _contents(cell)
    return found


def _globals_of(code: CodeType) -> set[str]:
    loaded = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    nested = (_globals_of(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return loaded.union(*nested)


def _contents(cell: CellType):
    try:
        return cell.cell_contents
    except ValueError:  # assigned later
        return None


def rebuilt(function, changes: dict):
    """A copy of the function with other values for some of its globals and closure variables."""
    cells = tuple(
        CellType(changes[name]) if name in changes else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    copy = FunctionType(
        function.__code__,
        {**function.__globals__, **changes},
        function.__name__,
        function.__defaults__,
        cells or None,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = dict(function.__annotations__)
    copy.__qualname__, copy.__doc__ = function.__qualname__, function.__doc__
    return copy
