"""Batch norm in training, with ReLU, of images in NCHW: ever fewer passes over memory, one idea per step."""

from labkit.formats import FP32
from labkit.norm.problem import BatchForward

PROBLEM = BatchForward
FORMATS = (FP32,)
ORDINARY = (
    (1, 1, 1, 2),
    (3, 5, 4, 6),
    (2, 3, 7, 7, False, "NCHW", None, 3, 0.1),
    (35, 2, 3, 14),
)
EXAMPLES = (*ORDINARY, (6, 3, 20, 10, True, "NCHW", 0.1, 0, 1e-5, True))
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)
COMPARED = 64, 256, 56, 56
ROOFLINE_PROBLEM = 8, 8, 28, 28
RECORD = "norm_batch"
SUPPORTED = {"layout": ("NCHW",)}
