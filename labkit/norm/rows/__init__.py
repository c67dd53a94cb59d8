"""Layer norm and RMS norm of rows: ever fewer passes over memory, and rows of any width, one idea per step."""

from labkit.formats import BF16, FP32
from labkit.norm.rows.problem import RowForward

PROBLEM = RowForward
FORMATS = FP32, BF16
EXAMPLES = (
    (1, 1, "layer"),
    (5, 48, "layer", 0.1),
    (3, 77, "rms"),
    (7, 256, "rms", 0.1),
    (2, 1000, "layer"),
    (4, 320, "layer", 1e-5, True),
)
WIDTHS = 256, 1024, 4096, 8192, 16384, 65536


def benched(*widths: int) -> tuple:
    """Return the sizes to time: matrices of 2^26 elements with rows of these widths, for both kinds of norm."""
    return tuple((2**26 // columns, columns, kind) for kind in ("layer", "rms") for columns in widths)


BENCHED = benched(*WIDTHS)
COMPARED = 2**13, 2**13, "layer"
ROOFLINE_PROBLEM = 64, 512, "layer"
RECORD = "norm_rows"
