"""Choice of the step that computes a norm: the fastest one that accepts the arrays' layouts."""

from labkit.arrays.workspace import Workspace
from labkit.calls.choice import ChosenStep, StepChooser
from labkit.formats import Format
from labkit.ladder import Problem
from labkit.norm.rows.problem import RowProblem

# A record is near if its blocks have the same work; the number of blocks hardly matters.
ROWS = StepChooser("norm", (("columns", 1), ("kind", 1)))
IMAGES = StepChooser("norm", (("values", 1), ("C", 1 / 2)), advice="take fewer images or channels at a time")


def chosen(arrays: tuple, problem: Problem, format: Format, workspace: Workspace) -> ChosenStep:
    """Return the fastest step for arrays that fit the problem, and its launches.

    Raises
    ------
    ValueError
        No step accepts so many images or channels, or so wide rows.
    """
    chooser = ROWS if isinstance(problem, RowProblem) else IMAGES
    return chooser.fastest(arrays, problem, format, workspace)
