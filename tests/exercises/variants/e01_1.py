"""Other answers to exercise 01.1."""

from . import Variant

_BOUND = "for k in range(A.shape[1]):"

VARIANTS = (
    Variant("the bug itself", "bounds", ((_BOUND, "for k in range(C.shape[1]):"),)),
    Variant("the other wrong side", "result", ((_BOUND, "for k in range(A.shape[0]):"),)),
    Variant("one product too few", "result", ((_BOUND, "for k in range(A.shape[1] - 1):"),)),
    Variant("one product too many", "bounds", ((_BOUND, "for k in range(A.shape[1] + 1):"),)),
    Variant("the last product alone", "result", (("total +=", "total ="),)),
    Variant("C is added to", "result", (("C[i, j] = total", "C[i, j] += total"),)),
    Variant("one row only", "unwritten", (("range(C.shape[0])", "range(1)"),)),
    Variant("A transposed", "bounds", (("A[i, k]", "A[k, i]"),)),
    Variant("a length of the book's", "result", ((_BOUND, "for k in range(min(9, A.shape[1])):"),)),
    Variant("K taken from B", "solved", ((_BOUND, "for k in range(B.shape[1]):"),)),
)
