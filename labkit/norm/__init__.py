"""Normalisation: the problem, and ladders of kernels, one idea a step.

>>> from labkit import norm
>>> layer = norm.BatchForward(N=64, C=256, H=56, W=56)
>>> operands = layer.operands()
>>> norm.ladder("batch").step("fused").launch(*operands)
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.norm.backward import BatchBackward
from labkit.norm.problem import BatchForward, average_factor
from labkit.norm.residual.problem import ResidualBackward, ResidualForward

ladder = partial(_ladder.ladder, "norm")

__all__ = ["BatchBackward", "BatchForward", "ResidualBackward", "ResidualForward", "average_factor", "ladder"]
