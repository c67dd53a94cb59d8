"""Default compile-time constants of the kernel; a `Form` replaces them."""

from labkit import formats, ptx

FORMAT = RESULT = formats.BF16.number
FP32 = formats.FP32.number
BM, BN = 128, 256  # a block's part of the product: rows and columns of the instruction
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
SPLITS = 1  # parts along k
SWAPPED = False  # whether B's rows, not A's, are the rows of the instruction
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LEFT_MAJOR = RIGHT_MAJOR = K_MAJOR  # axis along which an operand is contiguous
MN_ROWS = 64  # rows of an MN-major box, 128 bytes
MN_DEPTH = 64  # k of an MN-major box
WM = 64  # rows of a warpgroup's part
NUM_ACC = WM * BN // 128  # accumulators per thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
MMA_THREADS = 128 * WARPGROUPS
BOX = 32  # words of a row of C that one copy stores, 128 bytes
PACK = 2  # columns of C per word
BOX_ACC = BOX * PACK // 2  # accumulators per thread in a box
LEFT_SHAPE = STAGES, 1, BM, BK  # of shared memory: stages, boxes per tile, rows, words
RIGHT_SHAPE = STAGES, 1, BN, BK
RIGHT_BYTE = STAGES * BM * BK * 4  # where the tiles of the right operand begin
C_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of C begin
STAGE_BYTES = (BM + BN) * BK * 4
