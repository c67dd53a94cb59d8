"""Layer norm and RMS norm of rows: ever fewer passes over memory, and rows of any width, one idea per step."""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.rows.problem import RowForward

PROBLEM = RowForward
FORMATS = FP32, BF16, FP16
# tested sizes: rows, columns, kind, eps, hard (means far from zero)
EXAMPLES = (1, 1, "layer"), (5, 48, "layer", 0.1), (3, 77, "rms"), (7, 256, "rms", 0.1), (2, 1000, "layer")
EXAMPLES += ((4, 320, "layer", 1e-5, True),)
NARROW = 16, 64  # columns of the timed sizes with short rows
ODD = 197, 50257  # of those whose rows begin at any alignment
WIDTHS = 256, 1024, 4096, 8192, 16384, 65536  # of the others


def sizes_of_widths(*widths: int) -> tuple:
    """Return the sizes to time: matrices of 2^26 elements with rows of these widths, for both kinds of norm."""
    return tuple((2**26 // columns, columns, kind) for kind in ("layer", "rms") for columns in widths)


LONG = (8, 131072, "layer"), (512, 131072, "layer")  # few long rows, timed too
BENCHED = (*sizes_of_widths(*NARROW, *ODD, *WIDTHS), *LONG)
COMPARED = 2**13, 2**13, "layer"  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 64, 512, "layer"  # simulated for the roofline
RECORD = "norm_rows"  # of timings, in labkit/results
