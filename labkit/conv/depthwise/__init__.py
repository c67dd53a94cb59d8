"""Depthwise convolution: each channel has a filter of its own, and no sum crosses channels.

An output takes R x S multiply-adds, and not C times as many: it takes as long as to read the images and write the
outputs. (Howard and others, MobileNets, 2017.) Layers are those of MobileNetV2, EfficientNet-B0 and ConvNeXt-T.
"""

from labkit.conv.problem import Forward
from labkit.formats import BF16, FP16, FP32

PROBLEM = Forward
FORMATS = FP32, BF16, FP16
# tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped, layout
EXAMPLES = (
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 9, 8, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3),
    (2, 12, 7, 10, 12, 5, 3, 2, 2, 2, 1, 0, 1, 1, 1, 12, True),
    (3, 8, 7, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8, False, "NHWC"),
    (1, 6, 5, 9, 6, 2, 7, 2, 2, 1, 0, 3, 5, 1, 1, 6, True, "NHWC"),
)
# C, height and width, taps of a side, stride
MOBILENET_V2 = (
    (32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (192, 28, 3, 1), (384, 14, 3, 1), (576, 14, 3, 1), (960, 7, 3, 1)
)  # fmt: skip
EFFICIENTNET_B0 = (240, 28, 5, 1), (480, 14, 5, 1), (672, 14, 5, 1), (1152, 7, 5, 1)
CONVNEXT_T = (96, 56, 7, 1), (192, 28, 7, 1), (384, 14, 7, 1), (768, 7, 7, 1)
LAYERS = MOBILENET_V2 + EFFICIENTNET_B0 + CONVNEXT_T


def padded(N: int, layers, layout: str) -> tuple[tuple, ...]:
    """Return sizes of problems with N images and as many zeros as keep their sides."""
    return tuple(
        (N, C, side, side, C, taps, taps, stride, stride, *(taps // 2,) * 4, 1, 1, C, False, layout)
        for C, side, taps, stride in layers
    )


BENCHED = tuple(sizes for layout in ("NCHW", "NHWC") for sizes in padded(64, LAYERS, layout))  # timed sizes
(COMPARED,) = padded(64, MOBILENET_V2[2:3], "NHWC")  # the problem by which steps are compared
ROOFLINE_PROBLEM = padded(2, [(32, 28, 3, 1)], "NHWC")[0]  # simulated for the roofline
RECORD = "conv_depthwise"  # of timings, in labkit/results
SIZES, STRIDES = tuple(range(1, 8)), (1, 2)  # that registers hold: of filters; of outputs
# fields of problems that steps take: a filter per channel, and no dilation along an axis with a stride
DEPTHWISE = {"group_channels": (1,), "group_filters": (1,), "R": SIZES, "S": SIZES, "dilated_stride": (1,)}
DEPTHWISE |= {"stride_h": STRIDES, "stride_w": STRIDES}
# of steps with rings in shared memory: vectors of 16-bit channels, and filters for which memory is the limit
RING_FIELDS = {"layout": ("NHWC",), "odd_channels": (False,), "dilation_h": (1,), "dilation_w": (1,)}
RING_FIELDS |= {"R": SIZES[:5], "S": SIZES[:5]}
RING_EXAMPLES = (
    (1, 2, 1, 1, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 2, False, "NHWC"),
    (3, 8, 7, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8, False, "NHWC"),
    (1, 6, 5, 9, 6, 2, 5, 2, 2, 1, 0, 3, 4, 1, 1, 6, True, "NHWC"),
)
RING_BENCHED = padded(64, MOBILENET_V2 + EFFICIENTNET_B0, "NHWC")
