"""Vector operations: one kernel each, all limited by memory."""

from labkit.formats import FP32

FORMATS = (FP32,)
EXAMPLES = (1,), (3,), (255,), (50_003,)  # elements of a vector, as below
BENCHED = (2**24,), (2**26,), (2**28,)  # timed sizes
ROOFLINE_PROBLEM = (2**18,)  # simulated for the roofline
