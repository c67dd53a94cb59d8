"""The gradients of batch norm in training, with a residual added and ReLU, of images in NCHW."""

from labkit.formats import BF16, FP32
from labkit.norm.residual.problem import ResidualBackward

PROBLEM = ResidualBackward
FORMATS = FP32, BF16
EXAMPLES = (
    (1, 1, 1, 2),
    (3, 5, 4, 6),
    (2, 3, 7, 7, False, "NCHW", 0.1),
    (35, 2, 3, 14),
    (6, 3, 20, 10, True, "NCHW", 1e-5, True),
)
BENCHED = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 7, 7)
COMPARED = 64, 256, 56, 56
ROOFLINE_POINT = 8, 8, 28, 28
RECORD = "norm_residual_backward"
TAKES = {"layout": ("NCHW",)}
