"""Which step computes a norm of rows: of those that take its rows, the one that was fastest on an H100.

Narrow rows have a warp each, and wider ones a block. Forward, the widest are shared by a cluster, or in bfloat16 are
kept in shared memory. Backward, a cluster's blocks wait for one another at each row: in bfloat16, where a row has half
as many bytes, it is faster to read wide ones twice.
"""

from functools import cache

from labkit.formats import BF16, FP32, Format
from labkit.ladder import Step, TooLarge, ladder
from labkit.norm.rows.problem import RowForward, Rows
from labkit.norm.rows_backward.problem import RowBackward

ENDLESS = 2**31
STEPS = {  # by the widest row that a step is chosen for, the narrowest first
    (RowForward, FP32): {"warps": 512, "on_chip": 32_768, "clusters": 131_072, "three_reads": ENDLESS},
    (RowForward, BF16): {"warps": 512, "on_chip": 32_768, "overlapped": 114_688, "clusters": 131_072},
    (RowBackward, FP32): {"warps": 512, "one_read": 8192, "clusters": 65_536, "sums_first": ENDLESS},
    (RowBackward, BF16): {"warps": 512, "clusters": 8192, "sums_first": ENDLESS},
}


@cache
def step_of(problem: Rows, format: Format = FP32) -> Step:
    """The step for a problem.

    Raises
    ------
    TooLarge
        No step takes rows of that width in this format.
    """
    steps = ladder("norm", "rows" if isinstance(problem, RowForward) else "rows_backward")
    widest = STEPS[type(problem), format]
    for slug, most in widest.items():
        if problem.columns <= most:
            return steps.step(slug)
    why = f"a row has {problem.columns} values of {format}, and steps take {max(widest.values())}"
    raise TooLarge(why, "convert it to float32")
