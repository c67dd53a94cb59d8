"""The usual slips of learners turned round: small changes to a function that may put a mistake right.

Indices in the wrong order, a bound that is off by one, a step that is left out, a line that stands in a loop and
belongs after it. Whether a change helps is found by running the function with it.
"""

import ast
from collections.abc import Collection

from labkit.checking.slips.change import Change
from labkit.checking.slips.expressions import change_expressions
from labkit.checking.slips.lines import change_lines


def list_changes(function: ast.FunctionDef, constants: Collection[str], are_lines_first: bool) -> list[Change]:
    """Return the changes, the likeliest first.

    Parameters
    ----------
    constants
        The whole numbers among the names that the function reads from its cell.
    are_lines_first
        Whether threads wait for one another too little or too much: then whole lines come first, and barriers are
        added.
    """
    lines, others = change_lines(function, are_lines_first), change_expressions(function, constants)
    found = [*lines, *others] if are_lines_first else [*others, *lines]
    first: dict[str, Change] = {}
    for change in sorted(found, key=lambda change: change.rank):
        first.setdefault(change.text, change)
    return list(first.values())
