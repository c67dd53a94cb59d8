"""Products of a matrix and a vector, limited by memory: each element of the matrix is used once."""

from labkit.formats import FP32

FORMATS = (FP32,)
EXAMPLES = (1, 1), (37, 101), (301, 132), (9, 4096)  # rows and columns of the matrix, as below
BENCHED = (4096, 4096), (16384, 16384), (65536, 1024), (1024, 65536)  # timed sizes
ROOFLINE_PROBLEM = (512, 1024)  # simulated for the roofline
COMPARED = 16384, 16384  # the timed size by which steps are compared
