"""Default compile-time constants of the kernel; `launches` replaces them."""

import numpy as np

BM, BN, BK = 128, 256, 32  # a block's part of the product, and its steps along k
SLICES = 1  # groups of warps that share a tile: each takes an equal part of every step
WARPS_Y, WARPS_X = 2, 4  # of a group
LANES_Y, LANES_X = 4, 8
TM, TN = 16, 8  # outputs of a thread
DEPTH = 32  # k of a step that a slice takes
THREADS = 256
STAGES = 2
PENDING = STAGES - 2  # stages that may still be in flight when the next one is used
K_MAJOR, MN_MAJOR = 0, 1
LEFT_MAJOR, RIGHT_MAJOR = K_MAJOR, MN_MAJOR  # axis along which an operand is contiguous
LEFT_SHAPE = STAGES, BM, BK  # of the tiles in shared memory, contiguous along the same axis
RIGHT_SHAPE = STAGES, BK, BN
LEFT_WIDTH = RIGHT_WIDTH = OUTPUT_WIDTH = 4  # neighbours that one access moves: 4 if they are aligned, else 1
RIGHT_BYTE = 2 * BM * BK * 4  # where the tiles of the right operand begin
INDEX = np.uint32  # of elements of a tile from its first one
ADDS = False  # whether an array is added, times beta
