"""Other answers to the-wrong-loop."""

from . import Answer, right, shortcut, wrong

_BOUND = "for k in range(A.shape[1]):"

VARIANTS = (
    Answer("the bug itself", "bounds", ((_BOUND, "for k in range(C.shape[1]):"),)),
    Answer(
        "the other wrong side", "result", ((_BOUND, "for k in range(A.shape[0]):"),), mistake="k ended at M, not at K"
    ),
    Answer(
        "one product too few",
        "result",
        ((_BOUND, "for k in range(A.shape[1] - 1):"),),
        mistake="the last product of each sum were left out",
    ),
    Answer("one product too many", "bounds", ((_BOUND, "for k in range(A.shape[1] + 1):"),)),
    Answer(
        "the last product alone",
        "result",
        (("total +=", "total ="),),
        mistake="only the last product of each sum were kept",
    ),
    Answer("C is added to", "result", (("C[i, j] = total", "C[i, j] += total"),)),
    Answer("one row only", "unwritten", (("range(C.shape[0])", "range(1)"),)),
    Answer("A transposed", "bounds", (("A[i, k]", "A[k, i]"),)),
    Answer("a length of the book's", "result", ((_BOUND, "for k in range(min(9, A.shape[1])):"),)),
    Answer("K taken from B", "solved", ((_BOUND, "for k in range(B.shape[1]):"),)),
)

RIGHT = (
    right("loops with steps", ("range(C.shape[0])", "range(0, C.shape[0], 1)")),
    right(
        "names for the sides",
        ("    for i in range(C.shape[0])", "    M, K = A.shape\n    for i in range(M)"),
        ("range(A.shape[1])", "range(K)"),
    ),
)

WRONG = (
    wrong("the longest sum that is published", ("range(A.shape[1])", "range(min(A.shape[1], 30))")),
    wrong("an even number of products", ("range(A.shape[1])", "range(A.shape[1] // 2 * 2)")),
    wrong("at least two products", ("range(A.shape[1])", "range(max(A.shape[1], 2))")),
    wrong("the rows that are published", ("range(C.shape[0])", "range(min(C.shape[0], 30))")),
    wrong("the columns that are published", ("range(C.shape[1])", "range(min(C.shape[1], 30))")),
    wrong(
        "a first product that is there",
        ("total = np.float32(0)", "total = A[i, 0] * B[j, 0]"),
        ("range(A.shape[1])", "range(1, A.shape[1])"),
    ),
    wrong(
        "nothing stored where K is 0",
        ("            C[i, j] = total", "            if A.shape[1]:\n                C[i, j] = total"),
    ),
    wrong("at most 1,024 products", ("range(A.shape[1])", "range(min(A.shape[1], 1024))")),
)

SHORTCUTS = (
    shortcut("whole arrays", cell="@njit\ndef product(A, B, C):\n    C[:] = A @ B.T\n"),
    shortcut("a function of NumPy", cell="@njit\ndef product(A, B, C):\n    np.dot(A, B.T, C)\n"),
)
