"""Cells whose source a page folds: setup, and charts of records, whose code tells a reader nothing about GPUs."""

import ast
from collections.abc import Sequence

SETUP = "setup"  # the tag
CHARTS = {"records", "shape_ratios", "warp_states"}  # views that draw measurements


def folded_cells(cells: Sequence) -> set[int]:
    """Return the indices of the cells to fold.

    Parameters
    ----------
    cells
        Cells of a notebook, in order.
    """
    return {
        index
        for index, cell in enumerate(cells)
        if cell.cell_type == "code"
        and (SETUP in cell.metadata.get("tags", ()) or _only_draws_records(cell.source, cells[index + 1 :]))
    }


def _only_draws_records(source, later):
    """Say whether a cell assigns at most what it draws, and then draws records."""
    *before, last = _statements(source) or [None]
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return False
    if not (isinstance(last.value.func, ast.Name) and last.value.func.id in CHARTS):
        return False
    assigned = set()
    for statement in before:
        if not isinstance(statement, ast.Assign):
            return False
        assigned |= {part.id for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    statements = [part for cell in later if cell.cell_type == "code" for part in _statements(cell.source)]
    return not any(_is_used(name, statements) for name in assigned)


def _is_used(name, statements):
    """Say whether statements use a name before one of them assigns it anew."""
    for statement in statements:
        contexts = {type(part.ctx) for part in ast.walk(statement) if isinstance(part, ast.Name) and part.id == name}
        if contexts:
            return ast.Load in contexts
    return False


def _statements(source):
    try:
        return ast.parse(source).body
    except SyntaxError:  # a magic of IPython
        return []
