"""Which step computes a norm: the fastest of those that take the arrays as they lie."""

from labkit.arrays.workspace import Workspace
from labkit.calls.choice import Chooser, Chosen
from labkit.formats import Format
from labkit.ladder import Launch, Problem
from labkit.norm.rows.problem import RowProblem

# Records are near in what a block does; how many blocks there are hardly matters.
ROWS = Chooser("norm", (("columns", 1), ("kind", 1)))
IMAGES = Chooser("norm", (("values", 1), ("C", 1 / 2)), advice="take fewer images or channels at a time")


def launches_of(arrays: tuple, problem: Problem, format: Format, workspace: Workspace) -> list[Launch]:
    """What the fastest step launches for arrays that fit the problem.

    Raises
    ------
    ValueError
        There are too many images or channels for any of them, or rows are too wide.
    """
    return chosen(arrays, problem, format, workspace).launches


def chosen(arrays: tuple, problem: Problem, format: Format, workspace: Workspace) -> Chosen:
    """The fastest step for arrays that fit the problem, and its launches; raises as `launches_of`."""
    chooser = ROWS if isinstance(problem, RowProblem) else IMAGES
    return chooser.fastest(arrays, problem, format, workspace)
