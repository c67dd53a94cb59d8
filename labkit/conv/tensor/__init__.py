"""Convolution on tensor cores: bfloat16 and float16, sums in float32, channels last.

The outputs are the product of a matrix of NPQ x RSC pixels, which is never stored, and the filters, K x RSC. With
channels last both are read along their rows: a tap of a window is C contiguous values, and so is a tap of a filter.
"""

from labkit.conv.layers import RESNET_50_1X1, RESNET_50_3X3, TABLE_2, batched
from labkit.conv.problem import ForwardNHWC
from labkit.formats import BF16, FP16

PROBLEM = ForwardNHWC
FORMATS = BF16, FP16
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 6, 9, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (3, 72, 9, 7, 136, 2, 3, 1, 1, 1, 0, 0, 2, 1, 1, 1, True),
    (2, 8, 33, 34, 70, 1, 1),
)
BENCHED = (*batched(128, TABLE_2), *batched(64, RESNET_50_3X3, pad=1), *batched(64, RESNET_50_1X1))  # timed sizes
ROOFLINE_PROBLEM = 4, 64, 18, 18, 128, 3, 3  # simulated for the roofline
COMPARED = BENCHED[1]  # the problem by which steps are compared
RECORD = "conv_tensor"  # of timings, in labkit/results
