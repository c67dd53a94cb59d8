"""Attention: the problem, and ladders of kernels, one idea a step.

>>> from labkit import attention
>>> problem = attention.AttentionForward(batch=8, heads=16, queries=2048, head_dim=128, causal=True)
>>> operands = problem.operands()
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.attention.problem import AttentionForward

ladder = partial(_ladder.ladder, "attention")

__all__ = ["AttentionForward", "ladder"]
