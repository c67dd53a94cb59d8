"""Gradients of convolutions on tensor cores: bfloat16 and float16, sums in float32, channels last.

The gradient of the images is a product of NHW x KRS gradients of the outputs, which are never stored, and the filters.
That of the filters is a product of the K x NPQ gradients of the outputs and NPQ x RSC pixels.
"""

from labkit.conv.layers import RESNET_50_1X1, RESNET_50_3X3, TABLE_2, batched
from labkit.conv.problem import BackwardDataNHWC
from labkit.formats import BF16, FP16

PROBLEM = BackwardDataNHWC
FORMATS = BF16, FP16
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 9, 7, 6, 3, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (3, 136, 9, 7, 72, 2, 3, 1, 1, 1, 0, 0, 2, 1, 1, 1, True),
    (2, 70, 33, 34, 8, 1, 1, 2, 2),
)
BENCHED = (*batched(64, RESNET_50_3X3, pad=1), *batched(64, RESNET_50_1X1), *batched(128, TABLE_2[1:]))  # timed sizes
ROOFLINE_PROBLEM = 4, 64, 18, 18, 128, 3, 3  # simulated for the roofline
COMPARED = BENCHED[1]  # the problem by which steps are compared
RECORD = "conv_tensor_gradients"  # of timings, in labkit/results
