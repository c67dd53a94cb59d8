"""Softmax of rows: ever fewer passes over memory, and rows of any width, one idea per step."""

from labkit.formats import BF16, FP16, FP32
from labkit.softmax.problem import Forward

PROBLEM = Forward
FORMATS = FP32, BF16, FP16
EXAMPLES = (1, 1), (5, 48), (3, 77), (2, 1000), (4, 320, True)  # tested sizes: rows, columns, hard (huge logits)
NARROW = 16, 64  # columns of the timed sizes with short rows
ODD = 197, 50257  # of those whose rows begin at any alignment
WIDTHS = 256, 1024, 4096, 8192, 16384, 32768, 65536  # of the others


def sizes_of_widths(*widths: int) -> tuple:
    """Return the sizes to time: matrices of 2^26 elements with rows of these widths."""
    return tuple((2**26 // columns, columns) for columns in widths)


LONG = (8, 131072), (512, 131072)  # few long rows, timed too
BENCHED = (*sizes_of_widths(*NARROW, *ODD, *WIDTHS), *LONG)  # timed sizes
COMPARED = 2**13, 2**13  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 64, 512  # simulated for the roofline
RECORD = "softmax_rows"  # of timings, in labkit/results
