"""The gradients of batch norm in training, followed by ReLU, of images in NCHW: ever fewer passes over memory."""

from labkit.formats import FP32
from labkit.norm import batch
from labkit.norm.backward import BatchBackward
from labkit.norm.batch import COMPARED, ROOFLINE_PROBLEM, SUPPORTED

__all__ = ["COMPARED", "ROOFLINE_PROBLEM", "SUPPORTED"]

PROBLEM = BatchBackward
FORMATS = (FP32,)
# tested sizes: N, C, H, W, relu, layout, eps, hard (means far from zero)
EXAMPLES = (1, 1, 1, 2), (3, 5, 4, 6), (2, 3, 7, 7, False, "NCHW", 0.1), (35, 2, 3, 14)
EXAMPLES += ((6, 3, 20, 10, True, "NCHW", 1e-5, True),)
BENCHED = (*batch.BENCHED, (64, 3, 224, 224), (8, 2048, 7, 7))  # timed sizes; few large channels, many small ones
RECORD = "norm_batch_backward"  # of timings, in labkit/results
