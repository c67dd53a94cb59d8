"""C = A @ B in float32, one idea per step."""

from labkit.formats import FP32
from labkit.gemm.problem import Problem

PROBLEM = Problem
FORMATS = (FP32,)
EXAMPLES = (1, 1, 1), (7, 5, 3), (70, 100, 90), (130, 260, 36)  # sizes M, N, K of tested problems
BENCHED = tuple((size, size, size) for size in (1024, 2048, 4096, 8192))  # of timed problems
ROOFLINE_PROBLEM = 128, 256, 256  # whole blocks for every step, so that none computes outside of C
COMPARED = 4096, 4096, 4096  # timed problem by which steps are compared
