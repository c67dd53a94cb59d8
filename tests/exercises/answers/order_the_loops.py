"""Other answers to order-the-loops."""

from . import Answer, right, shortcut, wrong

_ORDER = "for i in range(M):\n        for k in range(K):\n            for j in range(N):\n                C"


def _order(outer, middle, inner):
    text = _ORDER
    for old, new in zip("ikj", (outer, middle, inner), strict=True):
        text = text.replace(f"for {old} in range({'MKN'['ikj'.index(old)]})", f"for <{new}>")
    for name, side in zip("ikj", "MKN", strict=True):
        text = text.replace(f"for <{name}>", f"for {name} in range({side})")
    return text


VARIANTS = (
    Answer("the order that the exercise starts with", "budget", ((_ORDER, _order("j", "k", "i")),)),
    Answer("down the columns of B", "budget", ((_ORDER, _order("i", "j", "k")),)),
    Answer("down the columns of B, rows last", "budget", ((_ORDER, _order("j", "i", "k")),)),
    Answer("down the columns of A and C", "budget", ((_ORDER, _order("k", "j", "i")),)),
    Answer("C is not set to zero", "result", (("            C[i, j] = 0\n", "            pass\n"),)),
    Answer("no sum", "result", (("C[i, j] +=", "C[i, j] ="),), mistake="only the last product of each sum were kept"),
    Answer(
        "rows of the book's shapes",
        "unwritten",
        (("    K, M = A.shape\n", "    K, M = A.shape[0], min(600, A.shape[1])\n"),),
    ),
    Answer("a length of the book's", "result", (("    N = B", "    K = min(600, K)\n    N = B"),)),
    Answer("a plain function", "not a kernel", (("@njit\n", ""),)),
    Answer("a kernel", "not a kernel", (("@njit\n", "@cuda.jit\n"),)),
    Answer("k outermost", "solved", ((_ORDER, _order("k", "i", "j")),)),
    Answer(
        "a product too few",
        "result",
        (("range(K):", "range(K - 1):"),),
        mistake="the last product of each sum were left out",
    ),
    Answer(
        "a sum as long as a side", "result", (("range(K):", "range(min(M, K)):"),), mistake="k ended at M, not at K"
    ),
)

RIGHT = (
    right(
        "j in the middle of nothing",
        ("                C[i, j] += A[k, i] * B[k, j]", "                C[i, j] = C[i, j] + B[k, j] * A[k, i]"),
    ),
)

WRONG = (
    wrong("an even number of products", ("for k in range(K)", "for k in range(K // 2 * 2)")),
    wrong("the columns that are published", ("    N = B.shape[1]", "    N = min(B.shape[1], 56)")),
    wrong("at least two rows", ("for i in range(M):\n        for k", "for i in range(max(M, 2)):\n        for k")),
    wrong("nothing stored where K is 0", ("            C[i, j] = 0", "            C[i, j] = C[i, j] if K == 0 else 0")),
    wrong(
        "the last product of a single column",
        ("C[i, j] += A[k, i] * B[k, j]", "C[i, j] = A[k, i] * B[k, j] + (C[i, j] if N > 1 else 0)"),
    ),
)

SHORTCUTS = (shortcut("whole arrays", cell="@njit\ndef reordered(A, B, C):\n    C[:] = A.T @ B\n"),)
