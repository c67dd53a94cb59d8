"""Other answers to exercise 01.3."""

from . import Variant

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
    Variant("no blocks", "budget", cell=_UNBLOCKED),
    Variant("blocks that do not fit", "budget", (("BLOCK = 32", "BLOCK = 128"),)),
    Variant("blocks of one line", "budget", (("BLOCK = 32", "BLOCK = 4"),)),
    Variant("past the edge of B", "bounds", (("min(k0 + BLOCK, K)", "k0 + BLOCK"),)),
    Variant("the ragged edge left out", "result", (("range(0, K, BLOCK)", "range(0, K - BLOCK + 1, BLOCK)"),)),
    Variant(
        "the ragged columns left out",
        "result",
        (("range(0, N, BLOCK)", "range(0, N - BLOCK + 1, BLOCK)"),),
    ),
    Variant(
        "C is set to zero first",
        "result",
        (("    for k0", "    for i in range(M):\n        for j in range(N):\n            C[i, j] = 0\n    for k0"),),
    ),
    Variant("C is stored, not added to", "result", (("C[i, j] += ", "C[i, j] = "),)),
    Variant(
        "rows of the book's shape",
        "result",
        (("    M, K = A.shape\n", "    M, K = min(70, A.shape[0]), A.shape[1]\n"),),
    ),
    Variant("a length of the book's", "result", (("range(0, K, BLOCK)", "range(0, min(K, 170), BLOCK)"),)),
    Variant("blocks of rows as well", "solved", cell=_BLOCKED_IN_ROWS_TOO),
    Variant("smaller blocks", "solved", (("BLOCK = 32", "BLOCK = 24"),)),
)
