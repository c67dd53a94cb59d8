"""Choice of the step, a kernel of a ladder, that computes a norm: the fastest one that accepts the arrays' layouts."""

from labkit.arrays.workspace import Workspace
from labkit.calls.choice import ChosenStep, StepChooser
from labkit.formats import Format
from labkit.ladder import Problem
from labkit.norm.rows.problem import RowProblem

# Recorded times of near sizes count: of equal work per block. Octaves apart are weighed by these factors.
ROWS = StepChooser(
    "norm", sizes=(("columns", 1), ("row_alignment", 1), ("rows", 1 / 8), ("kind", 1))
)  # kind: layer norm or RMS norm
IMAGES = StepChooser("norm", sizes=(("values", 1), ("C", 1 / 2)), advice="take fewer images or channels at a time")


def choose_step(arrays: tuple, problem: Problem, format: Format, workspace: Workspace) -> ChosenStep:
    """Return the fastest step for these arrays, and its launches; raise ValueError if they are too large for all."""
    return (ROWS if isinstance(problem, RowProblem) else IMAGES).fastest(arrays, problem, format, workspace)
