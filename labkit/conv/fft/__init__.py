"""Convolution by FFT: transforms, a product for each frequency, and the inverse, in float32."""

from labkit.conv.fft.problem import SpectralForward
from labkit.conv.layers import TABLE_2, batched
from labkit.formats import FP32

PROBLEM = SpectralForward
FORMATS = (FP32,)
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 9, 20, 2, 3, 5, 1, 1, 2, 0, 1, 4),
    (1, 2, 7, 5, 3, 4, 2, 1, 1, 0, 3, 1, 0, 1, 1, 1, True),
)
BENCHED = (*batched(128, TABLE_2), *batched(16, TABLE_2))  # timed sizes
ROOFLINE_PROBLEM = 2, 16, 14, 14, 32, 3, 3  # simulated for the roofline
COMPARED = BENCHED[1]  # the problem by which steps are compared
RECORD = "conv_fft"  # of timings, in labkit/results
ALGORITHMS = ("tiled", "three_products", "few_taps", "backward_data", "backward_filter")  # for users
