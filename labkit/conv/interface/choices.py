"""Choice of the algorithm for a convolution: predicted at once by `heuristic`, or measured by `find`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import inf

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import VECTOR_BYTES, address_of, has_c_order
from labkit.calls.choice import fastest_first, is_quick, recorded_ms, sort_by_estimates
from labkit.conv.interface.algorithms import Algorithm, algorithms
from labkit.conv.interface.costs import predict_ms
from labkit.conv.problem import Convolution
from labkit.formats import Format, format_named
from labkit.ladder import Launch
from labkit.layouts.interface.moves import make_copies
from labkit.table import Table

DIRECTIONS = {"y": "forward", "x": "backward data", "w": "backward filter"}


@dataclass(frozen=True)
class Row:
    """An algorithm for a problem: its time and workspace, or the reason why it does not apply."""

    algorithm: Algorithm
    time_ms: float | None
    workspace_bytes: int | None
    reason: str = ""


@dataclass(frozen=True)
class Ranking(Sequence):
    """The algorithms for a problem: candidates from fastest to slowest, then the others with their reasons.

    `is_measured` is True for times measured here, False for predictions. A notebook shows it as a table.
    """

    problem: Convolution
    format: Format
    workspace_limit_bytes: int | None
    rows: tuple[Row, ...]
    is_measured: bool

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    @property
    def candidates(self) -> list[Algorithm]:
        """Algorithms that apply, the fastest first."""
        return [row.algorithm for row in self.rows if not row.reason]

    @property
    def best(self) -> Algorithm:
        """The fastest algorithm; raises ValueError if none applies."""
        self.check()
        return self.candidates[0]

    def check(self) -> None:
        """Raise ValueError, with all reasons, if no algorithm applies."""
        if not self.candidates:
            by_reason = {}
            for row in self.rows:
                by_reason.setdefault(row.reason, []).append(str(row.algorithm))
            reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
            raise ValueError(
                f"nothing here computes {DIRECTIONS[self.problem.result]} {self.problem} in {self.format} "
                f"({reasons or 'there are no algorithms'}): change what the reasons name"
            )

    def table(self) -> Table:
        """Return a table of text, for the terminal or a notebook."""
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
    """Rank the algorithms for a problem by predicted time (`labkit.conv.interface.costs`).

    It times, compiles and allocates nothing, takes some milliseconds, and needs no GPU.

    Parameters
    ----------
    problem
        A `Forward`, `BackwardData` or `BackwardFilter`.
    format
        Format of the operands: float32, bfloat16 or float16.
    workspace_limit_bytes
        Most memory beyond the operands; None for no limit. With 0, only implicit GEMM and direct algorithms remain;
        none remains for the gradient of images.

    Returns
    -------
    A `Ranking`: `.best`, `.candidates`, and a row per algorithm with its workspace or the reason against it.

    Raises
    ------
    TypeError, ValueError
        The problem, format or limit is invalid.
    """
    format = check_options(problem, format, workspace_limit_bytes)
    rows = [predict(algorithm, problem, format, workspace_limit_bytes) for algorithm in algorithms(problem.result)]
    return _rank(problem, format, workspace_limit_bytes, rows)


def limit_workspace(ranking: Ranking, workspace_limit_bytes: int) -> Ranking:
    """Return `heuristic` with a limit, from its ranking without one: only algorithms over the limit are replanned."""
    problem, format = ranking.problem, ranking.format
    rows = {row.algorithm: row for row in ranking if not row.reason and row.workspace_bytes <= workspace_limit_bytes}
    limited = [
        rows.get(algorithm) or predict(algorithm, problem, format, workspace_limit_bytes)
        for algorithm in algorithms(problem.result)
    ]
    return _rank(problem, format, workspace_limit_bytes, limited)


def predict(algorithm: Algorithm, problem: Convolution, format: Format, workspace_limit_bytes: int | None) -> Row:
    """Return the predicted row of an algorithm, or why it does not apply."""
    run = algorithm.dry_run(problem, format, workspace_limit_bytes)
    if why := run.misfit or workspace_misfit(run.workspace_bytes, workspace_limit_bytes):
        return Row(algorithm, None, run.workspace_bytes, reason=why)
    time_ms = predict_ms(algorithm.step, problem, format, run.launches, run.workspace_bytes)
    return Row(algorithm, time_ms, run.workspace_bytes)


def _rank(problem, format, workspace_limit_bytes, rows) -> Ranking:
    usable = sorted((row for row in rows if not row.reason), key=lambda row: row.time_ms)
    unsuitable = (row for row in rows if row.reason)
    return Ranking(problem, format, workspace_limit_bytes, (*usable, *unsuitable), is_measured=False)


def choose(problem: Convolution, format: Format, workspace_limit_bytes: int | None = None) -> Algorithm:
    """Return the algorithm that `find` measured as fastest on this GPU, else the fastest by records or predictions.

    In the simulator it is one that simulates quickly: large tiles are fast on a GPU, but long loops in the simulator.
    """
    ranking = heuristic(problem, format, workspace_limit_bytes)
    ranking.check()
    predicted_ms = {row.algorithm: row.time_ms for row in ranking if not row.reason}

    def find_recorded_ms(algorithm):
        return recorded_ms(algorithm.step, problem, format) if workspace_limit_bytes is None else None

    ranked = sort_by_estimates(ranking.candidates, find_recorded_ms, predicted_ms.get)
    ranked.sort(key=lambda algorithm: not is_quick(algorithm.step))
    return fastest_first("conv", question(problem, format, workspace_limit_bytes), ranked)[0]


def question(problem: Convolution, format: Format, workspace_limit_bytes: int | None) -> str:
    """Return the key of a choice for `labkit.calls.tuning`, which adds the GPU and the algorithm's sources."""
    limit = "any workspace" if workspace_limit_bytes is None else f"workspace up to {workspace_limit_bytes} bytes"
    return f"{DIRECTIONS[problem.result]} {problem}, {format}, {limit}, {compiler()}"


@cache
def compiler() -> str:
    """Return the kernel compiler's name and version."""
    try:
        return f"numba-cuda {version('numba-cuda')}"
    except PackageNotFoundError:
        return "no compiler"


def make_launches(
    algorithm: Algorithm, problem: Convolution, format: Format, arrays, workspace, limit_bytes: int | None
) -> list[Launch]:
    """Return the launches of an algorithm for views of arrays, with copies of those that kernels cannot use."""
    before, after, operands = [], [], []
    for name in ("x", "w", "y"):
        X = operand = arrays[name]
        if not has_c_order(X) or address_of(X) % VECTOR_BYTES:  # kernels load 16 bytes at once
            operand = workspace.array(f"{name} in order", X.shape, X.dtype)
            if name == problem.result:
                after = make_copies(source=operand, target=X)
            else:
                before += make_copies(source=X, target=operand)
        operands.append(operand)
    return [*before, *algorithm.launches(*operands, problem, format, workspace, limit_bytes), *after]


def check_options(problem, format, workspace_limit_bytes) -> Format:
    """Return the format; raise TypeError or ValueError if the problem, format or limit is invalid."""
    if not isinstance(problem, Convolution) or not hasattr(problem, "result"):
        raise TypeError(f"the problem is {problem!r}: give a conv.Forward, conv.BackwardData or conv.BackwardFilter")
    if workspace_limit_bytes is not None:
        is_integer = isinstance(workspace_limit_bytes, int | np.integer) and not isinstance(workspace_limit_bytes, bool)
        if not is_integer or workspace_limit_bytes < 0:
            raise ValueError(
                f"workspace_limit_bytes is {workspace_limit_bytes!r}: give a whole number of bytes, 0 or more, or None"
            )
    return format_named(format)


def workspace_misfit(workspace_bytes: int, limit_bytes: int | None) -> str:
    """Say in one sentence why this much workspace is not available; "" if it is."""
    if limit_bytes is not None and workspace_bytes > limit_bytes:
        return f"it needs {workspace_bytes:,} bytes of workspace, and the limit is {limit_bytes:,}"
    if workspace_bytes > (memory_bytes := gpu_memory_bytes()):
        return f"it needs {workspace_bytes:,} bytes of workspace, and this GPU has {memory_bytes:,} bytes of memory"
    return ""


def gpu_memory_bytes() -> float:
    """Return the memory of this GPU; infinite in the simulator."""
    return cuda.current_context().get_memory_info().total if cuda.on_gpu() else inf
