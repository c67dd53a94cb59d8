"""Choice of the step that computes a softmax of rows, or its gradient."""

from labkit.arrays.workspace import Workspace
from labkit.calls.choice import ChosenStep, StepChooser
from labkit.formats import Format
from labkit.softmax.problem import RowProblem

ROWS = StepChooser("softmax", sizes=(("columns", 1), ("row_alignment", 1), ("rows", 1 / 8)))  # of recorded times


def choose_step(arrays: tuple, problem: RowProblem, format: Format, workspace: Workspace) -> ChosenStep:
    """Return the fastest step for device arrays, and its launches; raise ValueError if no step accepts such rows."""
    return ROWS.fastest(arrays, problem, format, workspace)
