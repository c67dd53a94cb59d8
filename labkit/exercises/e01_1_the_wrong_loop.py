"""Exercise 01.1: a triple loop that runs one of its loops over the wrong side."""

from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import matmul_loop

SIZES = ((5, 9, 7), (12, 3, 8))  # M, N, K


_BOUND = "for k in range(A.shape[1]):"

EXERCISE = Exercise(
    id="01.1",
    title="The wrong loop",
    task="This product is right for square matrices alone. One of its loops has the wrong length: find and mend it.",
    points=2,
    function="product",
    launch=matmul_loop,
    sizes=SIZES,
    drawn=((range(13, 30), range(10, 30), range(11, 30)),),
    machine="cpu",
    variants=(
        Variant("the bug itself", "bounds", ((_BOUND, "for k in range(C.shape[1]):"),)),
        Variant("the other wrong side", "result", ((_BOUND, "for k in range(A.shape[0]):"),)),
        Variant("one product too few", "result", ((_BOUND, "for k in range(A.shape[1] - 1):"),)),
        Variant("one product too many", "bounds", ((_BOUND, "for k in range(A.shape[1] + 1):"),)),
        Variant("the last product alone", "result", (("total +=", "total ="),)),
        Variant("C is added to", "result", (("C[i, j] = total", "C[i, j] += total"),)),
        Variant("one row only", "unwritten", (("range(C.shape[0])", "range(1)"),)),
        Variant("A transposed", "bounds", (("A[i, k]", "A[k, i]"),)),
        Variant("a length of the book's", "result", ((_BOUND, "for k in range(min(9, A.shape[1])):"),)),
        Variant("K taken from B", "solved", ((_BOUND, "for k in range(B.shape[0]):"),)),
    ),
)
