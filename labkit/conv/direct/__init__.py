"""Forward convolution by its definition, in float32: sums over taps."""

from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import Forward
from labkit.formats import FP32

PROBLEM = Forward
FORMATS = (FP32,)
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 9, 7, 5, 3, 2, 2, 1, 0, 2, 1, 0, 1, 2),
    (1, 4, 6, 20, 6, 2, 5, 1, 3, 1, 0, 2, 4, 2, 1, 2, True),
    (1, 2, 5, 18, 3, 4, 1, 1, 1, 3, 3, 0, 0, 1, 1, 1),
)
BENCHED = batched(128, TABLE_2)  # timed sizes
ROOFLINE_PROBLEM = 1, 8, 20, 20, 64, 5, 5  # whole blocks for every step: none computes outside of y
RECORD = "conv_direct"  # of timings, in labkit/results
ALGORITHMS = ("registers",)  # steps that `conv.forward` and others may choose
