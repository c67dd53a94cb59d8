"""Times the algorithms for a convolution on this GPU, and keeps the fastest for `forward` and `plan`."""

import numpy as np

from labkit import cuda
from labkit.calls.call import forget
from labkit.calls.tuner import make_operand_sets, tune_sets
from labkit.conv.interface.choices import Ranking, Row, heuristic
from labkit.conv.interface.convolution import Convolving, OfProblem
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.machine import device

MOST_SETS = 32  # of operands; so many of a problem so small that they all fit in L2 may well be found there
RANDOM_VALUES = 2**20  # which repeat in larger operands


def find(problem: Convolution, format: str | Format = "float32", workspace_limit_bytes: int | None = None) -> Ranking:
    """Times every algorithm that computes a problem on this GPU, and keeps the fastest for `forward` and `plan`.

    Operands are random normal, and there are so many sets of them that none is found in L2; launches are replayed from
    a graph, and algorithms take turns. Each is compiled before, which takes seconds; a progress bar shows how far that
    is. The choice is kept on disk, for this problem, format, limit and GPU, until the algorithm's source changes.

    Parameters, results and errors are those of `heuristic`; times are measured.

    Raises
    ------
    RuntimeError
        There is no GPU.
    """
    predicted = heuristic(problem, format, workspace_limit_bytes)
    if device.current().kind != "gpu":
        raise RuntimeError(
            "find times kernels on a GPU, and none is in use here: heuristic(problem) predicts without one, "
            "and `python -m labkit doctor` says what is missing"
        )
    predicted.check()
    needed = {row.algorithm: row.workspace_bytes for row in predicted if not row.reason}
    operation = OfProblem(problem, predicted.format, None, workspace_limit_bytes)
    times_ms = tune_sets(operation, _operands(problem, predicted.format), most=len(needed))
    forget(Convolving)
    rows = [Row(algorithm, time_ms, needed[algorithm]) for algorithm, time_ms in times_ms.items()]
    others = [row for row in predicted if row.reason]
    return Ranking(problem, predicted.format, workspace_limit_bytes, (*rows, *others), is_measured=True)


def _operands(problem, format) -> list[dict]:
    """Sets of x, w and y, the operands that are read of all sets together larger than L2."""
    values = format.encode(np.random.default_rng(0).standard_normal(RANDOM_VALUES))
    read = {name: np.resize(values, shape) for name, shape in problem.shapes.items() if name != problem.result}
    return make_operand_sets(
        sum(X.nbytes for X in read.values()),
        lambda: {
            name: cuda.to_device(read[name]) if name in read else cuda.device_array(shape, format.result.dtype)
            for name, shape in problem.shapes.items()
        },
        MOST_SETS,
    )
