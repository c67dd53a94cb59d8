"""NCHW to NHWC and back: a transpose of each image, channels x pixels, one idea a step.

A kernel sees a batch of matrices and writes their transposes. Of what it is told to move it knows the size alone:
elements of 4 bytes (float32) or of 2 (bfloat16; float16 is the same to it) are moved as bits.
"""

from labkit.formats import BF16, FP32
from labkit.layouts.problem import Conversion

PROBLEM = Conversion
FORMATS = FP32, BF16
TO, BACK = ("NCHW", "NHWC"), ("NHWC", "NCHW")
EXAMPLES = (
    (1, 1, 1, 1, *TO),
    (2, 40, 8, 9, *TO),
    (3, 3, 5, 7, *BACK),
    (2, 8, 3, 24, "NCHW", "NCHW_VECT_C"),
    (1, 70, 10, 15, *TO),
)
IN_VECTORS = (2, 40, 8, 9, *TO), (1, 72, 4, 4, *BACK), (2, 96, 2, 40, *TO)  # examples for steps that take no others
NARROW, ODD, LARGE = (
    tuple((*size, *way) for size in sizes for way in (TO, BACK))
    for sizes in (
        ((128, 3, 224, 224),),
        ((32, 512, 7, 7), (256, 256, 14, 14), (128, 96, 55, 55)),
        ((32, 64, 112, 112), (64, 256, 56, 56)),
    )
)
BENCHED = (*NARROW, *ODD, *LARGE)
ROOFLINE_POINT = 1, 64, 8, 16, *TO
RECORD = "layouts"
