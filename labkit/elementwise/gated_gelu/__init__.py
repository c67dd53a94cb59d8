"""GEGLU: from one element per thread to 16-byte vectors per thread."""

from labkit.elementwise.gated_gelu.problem import GEGLU
from labkit.formats import BF16, FP16, FP32

PROBLEM = GEGLU
FORMATS = FP32, BF16, FP16
EXAMPLES = (1, 1), (3, 77), (5, 48), (2, 1000)  # tested sizes: rows, columns
BENCHED = (4096, 4096), (8192, 11008)  # timed sizes
ROOFLINE_PROBLEM = 64, 512  # simulated for the roofline
RECORD = "gated_gelu"  # of timings, in labkit/results
