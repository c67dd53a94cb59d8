"""What the kernel is compiled for: defaults, in whose place a `Form` puts its own."""

from labkit import formats, ptx

FORMAT = RESULT = formats.BF16.number
FP32 = formats.FP32.number
BM, BN = 128, 256  # a block's part of the product: rows and columns of the instruction
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
SPLITS = 1  # parts along k
SWAPPED = False  # whether B's rows are the rows of the instruction
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LEFT_MAJOR = RIGHT_MAJOR = K_MAJOR  # whether an operand's memory runs along k, or along its rows in the tile
MN_ROWS = 64  # of an operand in a box that runs along them, 128 bytes
MN_DEPTH = 64  # along k, of such a box
WM = 64  # rows of a warpgroup's part
SUMS = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
MULTIPLYING = 128 * WARPGROUPS  # threads
BOX = 32  # words of a row of C that one copy stores, 128 bytes
EACH = 2  # columns of C in a word
BOX_SUMS = BOX * EACH // 2  # of a thread
LEFT_SHAPE = STAGES, 1, BM, BK  # of shared memory: by stages, boxes of which the operand's tile is made, and rows
RIGHT_SHAPE = STAGES, 1, BN, BK
RIGHT_BYTE = STAGES * BM * BK * 4  # where the tiles of the right operand begin
C_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of C begin
STAGE_BYTES = (BM + BN) * BK * 4
