"""Other answers to write-the-matmul."""

from . import Answer, right, shortcut, wrong
from .shared import ATOMIC_A, ATOMIC_B

_SWAPPED = """@cuda.jit
def matmul(alpha, A, B, C):
    thread = cuda.threadIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 8 + thread % 8
    col = cuda.blockIdx.x * 32 + thread // 8
    if row < C.shape[0] and col < C.shape[1]:
        total = np.float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        C[row, col] = alpha * total
"""

_SUM_IN_C = """@cuda.jit
def matmul(alpha, A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = 0
        for k in range(A.shape[1]):
            C[row, col] += alpha * A[row, k] * B[k, col]
"""

VARIANTS = (
    Answer(
        "row and column swapped",
        "unwritten",
        (("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),),
        mistake="row and column had changed places, in the grid or in the guard",
    ),
    Answer("neighbouring threads in a column", "budget", cell=_SWAPPED),
    Answer("no guard", "bounds", (("if row < C.shape[0] and col < C.shape[1]:", "if True:"),)),
    Answer(
        "K taken from the wrong side",
        "result",
        (("range(A.shape[1])", "range(A.shape[0])"),),
        mistake="k ended at M, not at K",
    ),
    Answer(
        "the last product forgotten",
        "result",
        (("range(A.shape[1])", "range(A.shape[1] - 1)"),),
        mistake="the last product of each sum were left out",
    ),
    Answer(
        "the last product only",
        "result",
        (("total +=", "total ="),),
        mistake="only the last product of each sum were kept",
    ),
    Answer("the sum in float64", "budget", (("np.float32(0)", "0.0"),)),
    Answer(
        "every factor in float64",
        "budget",
        (("total += A[row, k] * B[k, col]", "total += np.float32(np.float64(A[row, k]) * np.float64(B[k, col]))"),),
    ),
    Answer("C is added to", "result", (("C[row, col] = alpha", "C[row, col] += alpha"),)),
    Answer("the sum kept in C", "budget", cell=_SUM_IN_C),
    Answer("a length of the book's", "result", (("range(A.shape[1])", "range(min(A.shape[1], 40))"),)),
    Answer("alpha forgotten", "result", (("alpha * total", "total"),), mistake="alpha were left out"),
)

RIGHT = (
    right(
        "alpha in the sum",
        ("total += A[row, k] * B[k, col]", "total += alpha * A[row, k] * B[k, col]"),
        ("= alpha * total", "= total"),
    ),
    right("backwards", ("range(A.shape[1])", "range(A.shape[1] - 1, -1, -1)")),
)

WRONG = (
    wrong(
        "at least one product",
        ("total = np.float32(0)", "total = A[row, 0] * B[0, col]"),
        ("range(A.shape[1])", "range(1, A.shape[1])"),
    ),
    wrong("the size of alpha", ("alpha * total", "abs(alpha) * total")),
    wrong("alpha of 0 taken for 1", ("alpha * total", "(alpha if alpha != 0 else np.float32(1)) * total")),
    wrong("alpha of 1.5 at most", ("alpha * total", "min(alpha, np.float32(1.5)) * total")),
    wrong("C stored for each k", ("        C[row, col] = alpha", "            C[row, col] = alpha")),
    wrong("the longest sum that is published", ("range(A.shape[1])", "range(min(A.shape[1], 100))")),
    wrong("an even number of products", ("range(A.shape[1])", "range(A.shape[1] // 2 * 2)")),
    wrong("the rows that are published", ("row < C.shape[0]", "row < min(C.shape[0], 64)")),
    wrong("the columns that are published", ("col < C.shape[1]", "col < min(C.shape[1], 96)")),
)

SHORTCUTS = (
    shortcut(
        "a column a warp, by atomics",
        (
            "col, row = cuda.grid(2)",
            "x, y = cuda.threadIdx.x, cuda.threadIdx.y\n"
            "    row, col = cuda.blockIdx.y * 8 + x % 8, cuda.blockIdx.x * 32 + y * 4 + x // 8",
        ),
        ("A[row, k]", ATOMIC_A),
        ("B[k, col]", ATOMIC_B),
    ),
    shortcut(
        "the sum kept in C",
        ("        total = np.float32(0)\n", "        C[row, col] = 0\n"),
        ("total += A[row, k] * B[k, col]", "cuda.atomic.add(C, (row, col), A[row, k] * B[k, col])"),
        ("C[row, col] = alpha * total", "C[row, col] *= alpha"),
    ),
)
