"""Other answers to write-the-blocked-loop."""

from . import Answer, right, shortcut, wrong

_UNBLOCKED = """@njit
def blocked(A, B, C):
    for i in range(C.shape[0]):
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += A[i, k] * B[k, j]
"""

_BLOCKED_IN_ROWS_TOO = """@njit
def blocked(A, B, C):
    M, K = A.shape
    N = B.shape[1]
    for i0 in range(0, M, 48):
        for j0 in range(0, N, 48):
            for k0 in range(0, K, 48):
                for i in range(i0, min(i0 + 48, M)):
                    for k in range(k0, min(k0 + 48, K)):
                        for j in range(j0, min(j0 + 48, N)):
                            C[i, j] += A[i, k] * B[k, j]
"""

VARIANTS = (
    Answer("no blocks", "budget", cell=_UNBLOCKED),
    Answer("blocks that do not fit", "budget", (("BLOCK = 32", "BLOCK = 128"),)),
    Answer("blocks of one line", "budget", (("BLOCK = 32", "BLOCK = 4"),)),
    Answer("past the edge of B", "bounds", (("min(k0 + BLOCK, K)", "k0 + BLOCK"),)),
    Answer("the ragged edge left out", "result", (("range(0, K, BLOCK)", "range(0, K - BLOCK + 1, BLOCK)"),)),
    Answer(
        "the ragged columns left out",
        "result",
        (("range(0, N, BLOCK)", "range(0, N - BLOCK + 1, BLOCK)"),),
    ),
    Answer(
        "C is set to zero first",
        "result",
        (("    for k0", "    for i in range(M):\n        for j in range(N):\n            C[i, j] = 0\n    for k0"),),
        mistake="what C held were lost",
    ),
    Answer(
        "C is stored, not added to",
        "result",
        (("C[i, j] += ", "C[i, j] = "),),
        mistake="each product replaced what C held",
    ),
    Answer(
        "rows of the book's shape",
        "result",
        (("    M, K = A.shape\n", "    M, K = min(70, A.shape[0]), A.shape[1]\n"),),
    ),
    Answer("a length of the book's", "result", (("range(0, K, BLOCK)", "range(0, min(K, 170), BLOCK)"),)),
    Answer("blocks of rows as well", "solved", cell=_BLOCKED_IN_ROWS_TOO),
    Answer("smaller blocks", "solved", (("BLOCK = 32", "BLOCK = 24"),)),
    Answer(
        "a product too few",
        "result",
        (("min(k0 + BLOCK, K)", "min(k0 + BLOCK, K - 1)"),),
        mistake="the last product of each sum were left out",
    ),
    Answer(
        "a sum as long as a side",
        "result",
        (("min(k0 + BLOCK, K)", "min(k0 + BLOCK, K, M)"),),
        mistake="k ended at M, not at K",
    ),
    Answer(
        "the last product alone",
        "result",
        (("A[i, k] * B[k, j]", "A[i, k] * B[k, j] * (k == K - 1)"),),
        mistake="only the last product of each sum were kept",
    ),
)

RIGHT = (
    right("a block of 32, folded", ("BLOCK = 32", "BLOCK = 1 << 5")),
    right(
        "rows of B last",
        (
            "    for k0 in range(0, K, BLOCK):\n        for j0 in range(0, N, BLOCK):\n",
            "    for j0 in range(0, N, BLOCK):\n        for k0 in range(0, K, BLOCK):\n",
        ),
    ),
)

WRONG = (
    wrong("the longest sum that is published", ("range(0, K, BLOCK)", "range(0, min(K, 205), BLOCK)")),
    wrong("the columns that are published", ("    N = B.shape[1]", "    N = min(B.shape[1], 170)")),
    wrong("an even number of products", ("min(k0 + BLOCK, K)", "min(k0 + BLOCK, K // 2 * 2)")),
)

SHORTCUTS = (shortcut("whole arrays", cell="@njit\ndef blocked(A, B, C):\n    C += A @ B\n"),)
