"""Softmax of rows: the problem, and ladders of kernels, one idea a step.

>>> from labkit import softmax
>>> problem = softmax.Forward(rows=8192, columns=4096)
>>> operands = problem.operands()
>>> softmax.ladder("forward").step("on_chip").launch(*operands)
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.softmax.problem import Backward, Forward

ladder = partial(_ladder.ladder, "softmax")

__all__ = ["Backward", "Forward", "ladder"]
