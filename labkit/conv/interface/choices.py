"""Which algorithm computes a convolution best: predicted at once by `heuristic`, or as `find` has measured it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import inf

import numpy as np

from labkit import cuda
from labkit.calls.choice import fastest_first, is_quick, recorded_ms, sort_by_estimates
from labkit.conv.interface.algorithms import Algorithm, algorithms
from labkit.conv.interface.arrange import lies_well
from labkit.conv.interface.costs import predicted_ms
from labkit.conv.problem import Convolution
from labkit.formats import Format, format_named
from labkit.ladder import Launch
from labkit.layouts.interface.moves import moves
from labkit.table import Table

DIRECTIONS = {"y": "forward", "x": "backward data", "w": "backward filter"}


@dataclass(frozen=True)
class Row:
    """An algorithm for a problem: its time and its workspace, or the reason why it cannot be taken."""

    algorithm: Algorithm
    time_ms: float | None
    workspace_bytes: int | None
    reason: str = ""


@dataclass(frozen=True)
class Ranking(Sequence):
    """The algorithms for a problem, the fastest first, and then those that cannot be taken, with their reasons.

    `is_measured` tells whether times were measured here, or predicted. A notebook shows it as a table.
    """

    problem: Convolution
    format: Format
    workspace_limit_bytes: int | None
    rows: tuple[Row, ...]
    is_measured: bool

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        return self.rows[place]

    @property
    def candidates(self) -> list[Algorithm]:
        """Those that can be taken, the fastest first."""
        return [row.algorithm for row in self.rows if not row.reason]

    @property
    def best(self) -> Algorithm:
        """The fastest; raises as `check`."""
        self.check()
        return self.candidates[0]

    def check(self) -> None:
        """Raises ValueError, with all reasons, where none can be taken."""
        if not self.candidates:
            refused = {}
            for row in self.rows:
                refused.setdefault(row.reason, []).append(str(row.algorithm))
            reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in refused.items())
            raise ValueError(
                f"nothing here computes {DIRECTIONS[self.problem.result]} {self.problem} in {self.format} "
                f"({reasons or 'there are no algorithms'}): change what the reasons name"
            )

    def table(self) -> Table:
        """As a table of text, for the terminal or a notebook."""
        heading = "ms" if self.is_measured else "ms, predicted"
        return Table(
            ("algorithm", heading, "workspace, MB", "why not"),
            (
                (
                    str(row.algorithm),
                    "" if row.time_ms is None else f"{row.time_ms:.3f}",
                    "" if row.workspace_bytes is None else f"{row.workspace_bytes / 1e6:,.1f}",
                    row.reason,
                )
                for row in self.rows
            ),
        )

    def __repr__(self):
        return repr(self.table())

    def _repr_html_(self):
        return self.table()._repr_html_()


def heuristic(
    problem: Convolution, format: str | Format = "float32", workspace_limit_bytes: int | None = None
) -> Ranking:
    """The algorithms for a problem by the time that each is predicted to take (`labkit.conv.interface.costs`).

    Nothing is timed, compiled or allocated: it takes some milliseconds, and works without a GPU.

    Parameters
    ----------
    problem
        A `Forward`, `BackwardData` or `BackwardFilter`.
    format
        What its operands hold: float32, bfloat16 or float16.
    workspace_limit_bytes
        The most memory beside the operands that may be taken; None for as much as an algorithm wants. With 0 the
        implicit GEMM is left, or a direct algorithm; for the gradient of images nothing is.

    Returns
    -------
    A `Ranking`: `.best`, `.candidates`, and a row for each algorithm with its workspace or the reason against it.

    Raises
    ------
    TypeError, ValueError
        There is no such problem, format or limit.
    """
    format = check_asked(problem, format, workspace_limit_bytes)
    rows, others = [], []
    for algorithm in algorithms(problem.result):
        planned = algorithm.planned(problem, format, workspace_limit_bytes)
        why = planned.misfit or over(planned.workspace_bytes, workspace_limit_bytes)
        if why:
            others.append(Row(algorithm, None, planned.workspace_bytes, why))
        else:
            time_ms = predicted_ms(algorithm.step, problem, format, planned.launches, planned.workspace_bytes)
            rows.append(Row(algorithm, time_ms, planned.workspace_bytes))
    rows.sort(key=lambda row: row.time_ms)
    return Ranking(problem, format, workspace_limit_bytes, (*rows, *others), is_measured=False)


def chosen(problem: Convolution, format: Format, workspace_limit_bytes: int | None = None) -> Algorithm:
    """The algorithm that `find` found fastest for this on this GPU, else the one that is recorded or predicted to be.

    In the simulator it is one that is quickly simulated: large tiles make a GPU fast, and there they are long loops.
    """
    ranking = heuristic(problem, format, workspace_limit_bytes)
    ranking.check()
    predicted = {row.algorithm: row.time_ms for row in ranking if not row.reason}

    def recorded(algorithm):
        return recorded_ms(algorithm.step, problem, format) if workspace_limit_bytes is None else None

    ranked = sort_by_estimates(ranking.candidates, recorded, predicted.get)
    ranked.sort(key=lambda algorithm: not is_quick(algorithm.step))
    return fastest_first("conv", question(problem, format, workspace_limit_bytes), ranked)[0]


def question(problem: Convolution, format: Format, workspace_limit_bytes: int | None) -> str:
    """The question for `labkit.calls.tuning` in words; that adds the GPU and the sources of the algorithm."""
    limit = "any workspace" if workspace_limit_bytes is None else f"workspace up to {workspace_limit_bytes} bytes"
    return f"{DIRECTIONS[problem.result]} {problem}, {format}, {limit}, {compiler()}"


@cache
def compiler() -> str:
    """What compiles kernels here, with its version."""
    try:
        return f"numba-cuda {version('numba-cuda')}"
    except PackageNotFoundError:
        return "no compiler"


def launches_of(
    algorithm: Algorithm, problem: Convolution, format: Format, given, workspace, limit_bytes: int | None
) -> list[Launch]:
    """What an algorithm launches for views of arrays; those that kernels do not take as they lie are copied."""
    before, after, arrays = [], [], []
    for name in ("x", "w", "y"):
        X = in_order = given[name]
        if not lies_well(X):
            in_order = workspace.array(f"{name} in order", X.shape, X.dtype)
            if name == problem.result:
                after = moves(in_order, X)
            else:
                before += moves(X, in_order)
        arrays.append(in_order)
    return [*before, *algorithm.launches(*arrays, problem, format, workspace, limit_bytes), *after]


def check_asked(problem, format, workspace_limit_bytes) -> Format:
    """The format; raises where there is no such problem, format or limit."""
    if not isinstance(problem, Convolution) or not hasattr(problem, "result"):
        raise TypeError(f"the problem is {problem!r}: give a conv.Forward, conv.BackwardData or conv.BackwardFilter")
    if workspace_limit_bytes is not None:
        whole = isinstance(workspace_limit_bytes, int | np.integer) and not isinstance(workspace_limit_bytes, bool)
        if not whole or workspace_limit_bytes < 0:
            raise ValueError(
                f"workspace_limit_bytes is {workspace_limit_bytes!r}: give a whole number of bytes, 0 or more, or None"
            )
    return format_named(format)


def over(workspace_bytes: int, limit_bytes: int | None) -> str:
    """Why so much workspace cannot be taken, in a sentence; "" where it can."""
    if limit_bytes is not None and workspace_bytes > limit_bytes:
        return f"it needs {workspace_bytes:,} bytes of workspace, and the limit is {limit_bytes:,}"
    if workspace_bytes > (there := memory_bytes()):
        return f"it needs {workspace_bytes:,} bytes of workspace, and this GPU has {there:,} bytes of memory"
    return ""


def memory_bytes() -> float:
    """The memory of this GPU; the simulator has any."""
    return cuda.current_context().get_memory_info().total if cuda.on_gpu() else inf
