"""Batch norm in training, a residual added to it, and ReLU, of images in NCHW: ever fewer passes over memory.

Tested and timed sizes are those of batch norm.
"""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.batch import BENCHED, COMPARED, EXAMPLES, ROOFLINE_PROBLEM, SUPPORTED
from labkit.norm.residual.problem import ResidualForward

__all__ = ["BENCHED", "COMPARED", "EXAMPLES", "ROOFLINE_PROBLEM", "SUPPORTED"]

PROBLEM = ResidualForward
FORMATS = FP32, BF16, FP16
RECORD = "norm_residual"  # of timings, in labkit/results
