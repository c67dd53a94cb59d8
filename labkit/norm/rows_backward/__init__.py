"""The gradients of layer norm and RMS norm: ever fewer passes over memory, and rows of any width, one idea per step."""

from labkit.formats import BF16, FP32
from labkit.norm.rows import COMPARED, EXAMPLES, ROOFLINE_PROBLEM, WIDTHS, benched
from labkit.norm.rows_backward.problem import RowBackward

__all__ = ["COMPARED", "EXAMPLES", "ROOFLINE_PROBLEM"]

PROBLEM = RowBackward
FORMATS = FP32, BF16
BENCHED = benched(*WIDTHS)
RECORD = "norm_rows_backward"
