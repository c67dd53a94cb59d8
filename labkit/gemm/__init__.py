"""Matrix multiplication, C = A @ B: the problem, ladders of kernels with one idea per step, and `multiply`.

>>> from labkit import gemm
>>> [step.slug for step in gemm.ladder("fp32")][:3]
['naive', 'coalesced', 'tiled']
>>> C = gemm.multiply(A, B)
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.gemm.interface.product import multiply, plan
from labkit.gemm.interface.tuner import tune
from labkit.gemm.library import tilings
from labkit.gemm.library.kernel import general
from labkit.gemm.problem import LayerProblem, Problem, check_operands, error_bound, oracle
from labkit.ladder import Step

ladder = partial(_ladder.ladder, "gemm")


def step(name: str, slug: str) -> Step:
    """Return a step by its ladder and slug: `step("fp32", "tiled")`."""
    return ladder(name).step(slug)


__all__ = [
    "LayerProblem",
    "Problem",
    "Step",
    "check_operands",
    "error_bound",
    "general",
    "ladder",
    "multiply",
    "oracle",
    "plan",
    "step",
    "tilings",
    "tune",
]
