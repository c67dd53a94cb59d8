"""The gradients of batch norm in training, with a residual added and ReLU, of images in NCHW."""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.batch import BENCHED, COMPARED, ROOFLINE_PROBLEM, SUPPORTED
from labkit.norm.batch_backward import EXAMPLES
from labkit.norm.residual.problem import ResidualBackward

__all__ = ["BENCHED", "COMPARED", "EXAMPLES", "ROOFLINE_PROBLEM", "SUPPORTED"]

PROBLEM = ResidualBackward
FORMATS = FP32, BF16, FP16
RECORD = "norm_residual_backward"  # of timings, in labkit/results
