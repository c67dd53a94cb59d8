"""Measurement of the algorithms for a convolution on this GPU."""

import numpy as np

from labkit import cuda
from labkit.calls.call import forget
from labkit.calls.tuner import make_operand_sets, tune_sets
from labkit.conv.interface.choices import Ranking, Row, heuristic
from labkit.conv.interface.convolution import ConvByProblem, ConvOperation
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.machine import device

MAX_SETS = 32  # sets of operands; for a very small problem all of them may fit in L2
RANDOM_VALUES = 2**20  # repeated in larger operands


def find(problem: Convolution, format: str | Format = "float32", workspace_limit_bytes: int | None = None) -> Ranking:
    """Time every algorithm for a problem on this GPU, and store the fastest for `forward` and `plan`.

    Operands are random normal, in enough sets that none stays in L2. Graphs replay the launches, and the algorithms
    alternate. Each is compiled first, which takes seconds and shows a progress bar. The choice is stored on disk for
    this problem, format, limit and GPU, until the algorithm's source changes.

    Parameters, results and errors are those of `heuristic`, with measured times.

    Raises
    ------
    RuntimeError
        No GPU is in use.
    """
    predicted = heuristic(problem, format, workspace_limit_bytes)
    if device.current().kind != "gpu":
        raise RuntimeError(
            "find times kernels on a GPU, and none is in use here: heuristic(problem) predicts without one, "
            "and `python -m labkit doctor` says what is missing"
        )
    predicted.check()
    workspace_bytes = {row.algorithm: row.workspace_bytes for row in predicted if not row.reason}
    operation = ConvByProblem(problem, predicted.format, None, workspace_limit_bytes)
    times_ms = tune_sets(operation, _operands(problem, predicted.format), most=len(workspace_bytes))
    forget(ConvOperation)  # cached plans, which may use slower algorithms
    rows = [Row(algorithm, time_ms, workspace_bytes[algorithm]) for algorithm, time_ms in times_ms.items()]
    unsuitable = [row for row in predicted if row.reason]
    return Ranking(problem, predicted.format, workspace_limit_bytes, (*rows, *unsuitable), is_measured=True)


def _operands(problem, format) -> list[dict]:
    """Return sets of x, w and y; the inputs of all sets together exceed L2."""
    values = format.encode(np.random.default_rng(0).standard_normal(RANDOM_VALUES))
    inputs = {name: np.resize(values, shape) for name, shape in problem.shapes.items() if name != problem.result}
    return make_operand_sets(
        sum(X.nbytes for X in inputs.values()),
        lambda: {
            name: cuda.to_device(inputs[name]) if name in inputs else cuda.device_array(shape, format.result.dtype)
            for name, shape in problem.shapes.items()
        },
        MAX_SETS,
    )
