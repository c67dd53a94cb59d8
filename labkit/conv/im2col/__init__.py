"""Convolution as the product of a K x CRS and a CRS x NPQ matrix: the second one is filled with pixels first.

It holds each pixel once per window, at most R x S times. Then any matrix product completes the convolution.
(Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks for Document Processing, 2006.)
"""

from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import Forward
from labkit.formats import FP32

PROBLEM = Forward
FORMATS = (FP32,)
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 9, 18, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (3, 5, 4, 4, 3, 2, 3, 1, 2, 0, 1, 1, 2, 3, 1),
)
BENCHED = (*batched(128, TABLE_2), *batched(16, TABLE_2))  # timed sizes
ROOFLINE_PROBLEM = 2, 16, 10, 10, 64, 3, 3  # simulated for the roofline
RECORD = "conv_im2col"  # of timings, in labkit/results
ALGORITHMS = ("batch", "library")  # steps that `conv.forward` and others may choose
