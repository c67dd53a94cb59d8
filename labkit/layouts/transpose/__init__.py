"""NCHW to NHWC and back: a transpose of each image, channels x pixels.

A kernel gets a batch of matrices and writes their transposes. It needs only the size of elements: those of 4 bytes
(float32) or 2 (bfloat16 and float16) are moved as bits.
"""

from labkit.formats import BF16, FP32
from labkit.layouts.problem import Conversion

PROBLEM = Conversion
FORMATS = FP32, BF16
TO_NHWC, TO_NCHW = ("NCHW", "NHWC"), ("NHWC", "NCHW")
EXAMPLES = (  # tested sizes: N, C, H, W, source, target
    (1, 1, 1, 1, *TO_NHWC),
    (2, 40, 8, 9, *TO_NHWC),
    (3, 3, 5, 7, *TO_NCHW),
    (2, 8, 3, 24, "NCHW", "NCHW_VECT_C"),
    (1, 70, 10, 15, *TO_NHWC),
)
# rows of whole 16-byte vectors, for steps that need them
ALIGNED_EXAMPLES = (2, 40, 8, 9, *TO_NHWC), (1, 72, 4, 4, *TO_NCHW), (2, 96, 2, 40, *TO_NHWC)
NARROW_BENCHED, UNALIGNED_BENCHED, ALIGNED_BENCHED = (
    tuple((*size, *layouts) for size in sizes for layouts in (TO_NHWC, TO_NCHW))
    for sizes in (
        ((128, 3, 224, 224),),
        ((32, 512, 7, 7), (256, 256, 14, 14), (128, 96, 55, 55)),
        ((32, 64, 112, 112), (64, 256, 56, 56)),
    )
)
BENCHED = (*NARROW_BENCHED, *UNALIGNED_BENCHED, *ALIGNED_BENCHED)  # timed sizes
ROOFLINE_PROBLEM = 1, 64, 8, 16, *TO_NHWC  # simulated for the roofline
RECORD = "layouts"  # of timings, in labkit/results
