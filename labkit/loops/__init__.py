"""Matrix multiplication as loops on a CPU: a ladder of four steps, and traces through a model of the caches.

>>> from labkit import loops
>>> [step.slug for step in loops.ladder()]
['python', 'compiled', 'rows', 'blocked']
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.formats import FP32
from labkit.gemm.problem import Problem
from labkit.ladder import Step
from labkit.loops.loop_trace import LoopTrace
from labkit.loops.orders import ORDERS
from labkit.loops.small_cpu import SMALL_CPU
from labkit.loops.trace import trace

# What all steps share: `labkit.ladder` reads it. Sizes are M, N, K.
PROBLEM = Problem
FORMATS = (FP32,)
EXAMPLES = (1, 1, 1), (7, 5, 3), (40, 30, 50)  # tested
BENCHED = ((384, 384, 384),)  # timed
ROOFLINE_PROBLEM = 64, 64, 64  # a dot in the roofline

ladder = partial(_ladder.ladder, "loops")


def step(slug: str) -> Step:
    """Return a step by its slug: `step("blocked")`."""
    return ladder().step(slug)


__all__ = ["ORDERS", "SMALL_CPU", "LoopTrace", "Step", "ladder", "step", "trace"]
