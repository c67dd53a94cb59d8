"""Which step computes a softmax of rows, or its gradient: the fastest of those that take such wide rows."""

from labkit.arrays.workspace import Workspace
from labkit.calls.choice import Chooser, Chosen
from labkit.formats import Format
from labkit.ladder import Launch
from labkit.softmax.problem import RowProblem

ROWS = Chooser("softmax", (("columns", 1),))  # records are near in the width of a row, however many rows there are


def launches_of(arrays: tuple, problem: RowProblem, format: Format, workspace: Workspace) -> list[Launch]:
    """What the fastest step launches for arrays of the device.

    Raises
    ------
    ValueError
        No step takes such rows here.
    """
    return chosen(arrays, problem, format, workspace).launches


def chosen(arrays: tuple, problem: RowProblem, format: Format, workspace: Workspace) -> Chosen:
    """The fastest step for arrays of the device, and its launches; raises as `launches_of`."""
    return ROWS.fastest(arrays, problem, format, workspace)
