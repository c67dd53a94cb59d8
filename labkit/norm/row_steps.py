"""Which step computes a norm of rows: of those that take its rows, the one that was fastest on an H100.

Narrow rows have a warp each, and wider ones a block; the widest are shared by a cluster forward, and are read twice
backward, where blocks of a cluster would wait for one another at each row.
"""

from functools import cache

from labkit.formats import FP32, Format
from labkit.ladder import Step, TooLarge, ladder
from labkit.norm.rows.problem import RowForward, Rows

ENDLESS = 2**31
FORWARD = {"warps": 512, "on_chip": 8192, "clusters": 131_072, "three_reads": ENDLESS}  # to which width
BACKWARD = {"warps": 512, "clusters": 8192, "sums_first": ENDLESS}


@cache
def step_of(problem: Rows, format: Format = FP32) -> Step:
    """The step for a problem.

    Raises
    ------
    TooLarge
        No step takes rows of that width in this format.
    """
    forward = isinstance(problem, RowForward)
    steps = ladder("norm", "rows" if forward else "rows_backward")
    for slug, most in (FORWARD if forward else BACKWARD).items():
        step = steps.step(slug)
        if problem.columns <= most and format in step.formats:
            return step
    why = f"a row has {problem.columns} values of {format}, and steps take {FORWARD['clusters']}"
    raise TooLarge(why, "convert it to float32")
