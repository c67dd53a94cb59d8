"""3 x 3 filters by transformed tiles of images, which take fewer multiplications (Winograd; Lavin and Gray, 2015)."""

from labkit.conv.layers import RESNET_50_3X3, TABLE_2, VGG_16, batched
from labkit.conv.winograd.problem import Forward4x4
from labkit.formats import FP32

PROBLEM = Forward4x4
FORMATS = (FP32,)
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1),  # one pixel
    (2, 3, 7, 6, 5, 3, 3, 1, 1, 0, 2, 1, 0),
    (1, 4, 8, 10, 3, 3, 3, 1, 1, 1, 1, 1, 1),
)
BENCHED = (  # timed sizes
    *batched(64, VGG_16, pad=1),
    *batched(64, RESNET_50_3X3, pad=1),
    *batched(128, TABLE_2[4:]),
    *batched(16, TABLE_2[4:]),
)
ROOFLINE_PROBLEM = 1, 32, 16, 16, 64, 3, 3, 1, 1, 1, 1, 1, 1  # simulated for the roofline
COMPARED = batched(64, VGG_16, pad=1)[4]  # the problem by which steps are compared
RECORD = "conv_winograd"  # of timings, in labkit/results
ALGORITHMS = ("f2x2", "f4x4", "f6x6", "fused", "backward_data")  # steps that `conv.forward` and others may choose
