"""Other answers to rows-and-columns."""

from . import Answer, right, shortcut, wrong

_ALONE = """@cuda.jit
def add(A, B, C):
    col, row = cuda.grid(2)
    if row == 0 and col == 0:
        for i in range(C.shape[0]):
            for j in range(C.shape[1]):
                C[i, j] = A[i, j] + B[i, j]
"""

_MAPPING = "col, row = cuda.grid(2)"

_GUARD = "row < C.shape[0] and col < C.shape[1]"

VARIANTS = (
    Answer(
        "the bug itself",
        "unwritten",
        ((_MAPPING, "row, col = cuda.grid(2)"),),
        mistake="row and column had changed places, in the grid or in the guard",
    ),
    Answer("the guard swapped instead", "unwritten", ((_GUARD, "row < C.shape[1] and col < C.shape[0]"),)),
    Answer("no guard", "bounds", ((_GUARD, "True"),)),
    Answer("half a guard", "bounds", ((_GUARD, "col < C.shape[1]"),)),
    Answer("transposed reads", "bounds", (("A[row, col]", "A[col, row]"),)),
    Answer("a difference", "result", (("A[row, col] + B", "A[row, col] - B"),), mistake="B were subtracted"),
    Answer("one thread does everything", "budget", cell=_ALONE),
    Answer("the book's rows", "unwritten", ((_GUARD, "row < 70 and row < C.shape[0] and col < C.shape[1]"),)),
    Answer("other names", "solved", ((_MAPPING, "x, y = cuda.grid(2)\n    col = x\n    row = y"),)),
    Answer(
        "threads of the block alone",
        "unwritten",
        (("col, row = cuda.grid(2)", "col, row = cuda.threadIdx.x, cuda.threadIdx.y"),),
        mistake="each block began at row 0 and column 0",
    ),
)

RIGHT = (right("no names for the indices", ("A[row, col] + B[row, col]", "B[row][col] + A[row][col]")),)

WRONG = (
    wrong("the rows that are published", ("row < C.shape[0]", "row < min(C.shape[0], 120)")),
    wrong("the columns that are published", ("col < C.shape[1]", "col < min(C.shape[1], 140)")),
    wrong("an even number of columns", ("col < C.shape[1]", "col < C.shape[1] // 2 * 2")),
    wrong("at least two rows", ("row < C.shape[0]", "row < max(C.shape[0], 2)")),
    wrong(
        "nothing where A is 0",
        (
            "        C[row, col] = A[row, col] + B[row, col]",
            "        a = A[row, col]\n        if a != 0:\n            C[row, col] = a + B[row, col]",
        ),
    ),
    wrong("at most 4,096 rows", ("row < C.shape[0]", "row < min(C.shape[0], 4096)")),
)

SHORTCUTS = (
    shortcut(
        "one warp for all",
        (
            "    col, row = cuda.grid(2)\n    if row < C.shape[0] and col < C.shape[1]:\n",
            """    thread = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    first = cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0 and thread < 32
    for i in range(thread, C.size * first, 32):
        row, col = i // C.shape[1], i % C.shape[1]
""",
        ),
    ),
)
