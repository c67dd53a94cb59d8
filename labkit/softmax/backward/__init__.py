"""The gradient of a softmax of rows: ever fewer passes over memory, and rows of any width, one idea per step."""

from labkit.formats import BF16, FP16, FP32
from labkit.softmax.forward import COMPARED, EXAMPLES, LONG, NARROW, ODD, ROOFLINE_PROBLEM, WIDTHS, sizes_of_widths
from labkit.softmax.problem import Backward

__all__ = ["COMPARED", "EXAMPLES", "ROOFLINE_PROBLEM"]

PROBLEM = Backward
FORMATS = FP32, BF16, FP16
BENCHED = (*sizes_of_widths(*NARROW, *ODD, *WIDTHS), *LONG)  # timed
RECORD = "softmax_rows_backward"  # of timings, in labkit/results
