"""Other answers to exercise 02.2."""

from . import Variant

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
    Variant("the bug itself", "unwritten", ((_MAPPING, "row, col = cuda.grid(2)"),)),
    Variant("the guard swapped instead", "unwritten", ((_GUARD, "row < C.shape[1] and col < C.shape[0]"),)),
    Variant("no guard", "bounds", ((_GUARD, "True"),)),
    Variant("half a guard", "bounds", ((_GUARD, "col < C.shape[1]"),)),
    Variant("transposed reads", "bounds", (("A[row, col]", "A[col, row]"),)),
    Variant("a difference", "result", (("A[row, col] + B", "A[row, col] - B"),)),
    Variant("one thread does everything", "budget", cell=_ALONE),
    Variant("the book's rows", "unwritten", ((_GUARD, "row < 70 and row < C.shape[0] and col < C.shape[1]"),)),
    Variant("other names", "solved", ((_MAPPING, "x, y = cuda.grid(2)\n    col = x\n    row = y"),)),
)
