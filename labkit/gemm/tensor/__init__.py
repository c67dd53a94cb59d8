"""C = A @ B.T on tensor cores, one idea per step: bfloat16, float16 and e4m3, sums in float32.

B has one row per column of C, like a layer's weights: both operands are contiguous along k. Tensor cores take 32 bytes
of k per instruction in any format, so the kernels work on words, and `FORMAT` says how to interpret them.
"""

from labkit.formats import BF16, E4M3, FP16
from labkit.gemm.problem import LayerProblem

PROBLEM = LayerProblem
FORMATS = BF16, FP16, E4M3
EXAMPLES = (136, 264, 80), (1, 16, 16), (200, 16, 272)  # sizes M, N, K of tested problems: rows of whole 16 bytes
BENCHED = tuple((size, size, size) for size in (1024, 2048, 4096, 8192, 16384))  # of timed problems
ROOFLINE_PROBLEM = 128, 256, 1024  # deep, so that work done once per tile counts little
COMPARED = 4096, 4096, 4096  # timed problem by which steps are compared
RECORD = "gemm_tensor"  # of timings, in labkit/results
