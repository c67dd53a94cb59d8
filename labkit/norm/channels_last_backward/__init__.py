"""The gradients of batch norm in training, followed by ReLU, of images in NHWC."""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.backward import BatchBackward
from labkit.norm.channels_last import BENCHED, COMPARED, ROOFLINE_PROBLEM, SUPPORTED

__all__ = ["BENCHED", "COMPARED", "ROOFLINE_PROBLEM", "SUPPORTED"]

PROBLEM = BatchBackward
FORMATS = FP32, BF16, FP16
# tested sizes: N, C, H, W, relu, layout, eps, hard
EXAMPLES = (1, 1, 1, 2, True, "NHWC"), (3, 5, 4, 6, True, "NHWC"), (2, 36, 7, 7, False, "NHWC", 0.1)
EXAMPLES += (35, 140, 3, 14, True, "NHWC"), (6, 3, 20, 10, True, "NHWC", 1e-5, True)
RECORD = "norm_channels_last_backward"  # of timings, in labkit/results
