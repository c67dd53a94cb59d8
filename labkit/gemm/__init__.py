"""Matrix multiplication, C = A @ B: the problem, ladders of kernels, one idea a step, and a function that uses them.

>>> from labkit import gemm
>>> [step.slug for step in gemm.ladder("fp32")][:3]
['naive', 'coalesced', 'tiled']
>>> [step.slug for step in gemm.ladder("tensor")][-2:]
['split', 'general']
>>> C = gemm.multiply(A, B)
"""

from labkit.gemm import formats
from labkit.gemm.interface.product import multiply
from labkit.gemm.interface.tuner import tune
from labkit.gemm.ladder import Step, ladder, step
from labkit.gemm.problem import Problem, check_operands, error_bound, oracle
from labkit.gemm.tensor import plans

__all__ = [
    "Problem",
    "Step",
    "check_operands",
    "error_bound",
    "formats",
    "ladder",
    "multiply",
    "oracle",
    "plans",
    "step",
    "tune",
]
