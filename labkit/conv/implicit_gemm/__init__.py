"""Convolution as the product of a K x CRS and a CRS x NPQ matrix; the second is never stored.

Its tiles are gathered from the images as needed. (Chetlur and others, cuDNN: Efficient Primitives for Deep
Learning, 2014, section 3.1.)
"""

from labkit.conv.layers import RESNET_50_3X3, TABLE_2, VGG_16, batched
from labkit.conv.problem import Forward
from labkit.formats import FP32

PROBLEM = Forward
FORMATS = (FP32,)
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 9, 18, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (1, 5, 4, 4, 3, 2, 3, 1, 2, 0, 1, 1, 2, 3, 1),
    (3, 17, 5, 6, 20, 1, 1),
)
BENCHED = (  # timed sizes
    *batched(128, TABLE_2),
    *batched(16, TABLE_2),
    *batched(64, VGG_16, pad=1),
    *batched(64, RESNET_50_3X3, pad=1),
)
ROOFLINE_PROBLEM = 2, 16, 10, 10, 64, 3, 3  # simulated for the roofline
RECORD = "conv_implicit_gemm"  # of timings, in labkit/results
ALGORITHMS = ("gathered", "split", "backward_data", "backward_filter")  # for users
