"""Batch norm in training, with ReLU, of images in NCHW: ever fewer passes over memory, one idea per step."""

from labkit.formats import FP32
from labkit.norm.problem import BatchForward

PROBLEM = BatchForward
FORMATS = (FP32,)
# tested sizes: N, C, H, W, relu, layout, momentum, batches, eps, hard (means far from zero)
EASY_EXAMPLES = (1, 1, 1, 2), (3, 5, 4, 6), (2, 3, 7, 7, False, "NCHW", None, 3, 0.1), (35, 2, 3, 14)
EXAMPLES = (*EASY_EXAMPLES, (6, 3, 20, 10, True, "NCHW", 0.1, 0, 1e-5, True))
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)  # timed sizes
COMPARED = 64, 256, 56, 56  # the timed size by which steps are compared
ROOFLINE_PROBLEM = 8, 8, 28, 28  # simulated for the roofline
RECORD = "norm_batch"  # of timings, in labkit/results
SUPPORTED = {"layout": ("NCHW",)}  # the problem's fields that steps accept
