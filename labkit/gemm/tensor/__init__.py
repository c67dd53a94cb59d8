"""C = A @ B.T on tensor cores, one idea a step: bfloat16, float16 and e4m3, sums in float32.

B holds a row for each column of C, as a layer's weights do: both operands are then read along k. To the tensor cores a
format is only a way to cut 32 bytes of k into numbers, so the kernels see bytes, and `FORMAT` says what they mean.
"""

from labkit.formats import BF16, E4M3, FP16
from labkit.gemm.problem import LayerProblem

PROBLEM = LayerProblem
FORMATS = BF16, FP16, E4M3
EXAMPLES = (136, 264, 80), (1, 16, 16), (200, 16, 272)  # rows of whole 16 bytes
BENCHED = tuple((size, size, size) for size in (1024, 2048, 4096, 8192, 16384))
ROOFLINE_POINT = 128, 256, 1024  # deep, so that what is done once a tile counts little
COMPARED = 4096, 4096, 4096
RECORD = "gemm_tensor"
