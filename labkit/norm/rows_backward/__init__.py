"""The gradients of layer norm and RMS norm: ever fewer passes over memory, and rows of any width, one idea per step."""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.rows import COMPARED, EXAMPLES, LONG, NARROW, ODD, ROOFLINE_PROBLEM, WIDTHS, sizes_of_widths
from labkit.norm.rows_backward.problem import RowBackward

__all__ = ["COMPARED", "EXAMPLES", "ROOFLINE_PROBLEM"]

PROBLEM = RowBackward
FORMATS = FP32, BF16, FP16
BENCHED = (*sizes_of_widths(*NARROW, *ODD, *WIDTHS), *LONG)  # timed
RECORD = "norm_rows_backward"  # of timings, in labkit/results
