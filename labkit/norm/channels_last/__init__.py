"""Batch norm in training, with ReLU, of images in NHWC: ever fewer passes over memory, one idea per step."""

from labkit.formats import BF16, FP16, FP32
from labkit.norm.problem import BatchForward

PROBLEM = BatchForward
FORMATS = FP32, BF16, FP16
# tested sizes: N, C, H, W, relu, layout, momentum, batches, eps, hard
EXAMPLES = (1, 1, 1, 2, True, "NHWC"), (3, 5, 4, 6, True, "NHWC"), (2, 36, 7, 7, False, "NHWC", None, 3, 0.1)
EXAMPLES += (35, 140, 3, 14, True, "NHWC"), (6, 3, 20, 10, True, "NHWC", 0.1, 0, 1e-5, True)
BENCHED = tuple((*sizes, True, "NHWC") for sizes in ((64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)))  # timed
COMPARED = BENCHED[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 8, 64, 14, 14, True, "NHWC"  # simulated for the roofline
RECORD = "norm_channels_last"  # of timings, in labkit/results
SUPPORTED = {"layout": ("NHWC",)}  # the problem's fields that steps accept
