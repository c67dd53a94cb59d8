"""Other answers to exercise 05.4."""

from . import Variant

_IF = "        if beta == 0:\n            C[row, col] = alpha * total\n        else:\n    "

_STORE = "        C[row, col] = alpha * total + beta * C[row, col]"

VARIANTS = (
    Variant("C is read although beta is 0", "result", ((_IF, ""),)),
    Variant(
        "alpha forgotten",
        "result",
        (("alpha * total +", "total +"),),
    ),
    Variant("beta forgotten", "result", (("beta * C[row, col]", "C[row, col]"),)),
    Variant(
        "alpha for both",
        "result",
        (("alpha * total + beta * C[row, col]", "alpha * (total + beta * C[row, col])"),),
    ),
    Variant(
        "alpha and beta swapped",
        "result",
        (("alpha * total + beta * C[row, col]", "beta * total + alpha * C[row, col]"),),
    ),
    Variant("nothing of C", "result", ((" + beta * C[row, col]", ""),)),
    Variant(
        "added to C",
        "result",
        (("            C[row, col] = alpha * total + beta", "            C[row, col] += alpha * total + beta"),),
    ),
    Variant("a negative beta taken for none", "result", (("if beta == 0:", "if beta <= 0:"),)),
    Variant("a length of the book's", "result", (("range(0, K, TILE)", "range(0, min(K, 48), TILE)"),)),
    Variant("without a guard", "bounds", (("if row < M and col < N:", "if row < M:"),)),
    Variant("in float64", "budget", (("alpha * total + beta", "1.0 * alpha * total + beta"),)),
    Variant(
        "C is loaded and then dropped",
        "budget",
        (
            (
                "            C[row, col] = alpha * total\n",
                "            old = C[row, col]\n            C[row, col] = alpha * (total if old == 0 else total)\n",
            ),
        ),
    ),
    Variant(
        "alpha times each element of A",
        "solved",
        (
            ("A_tile[y, x] = A[row, start + x] if", "A_tile[y, x] = alpha * A[row, start + x] if"),
            ("C[row, col] = alpha * total\n", "C[row, col] = total\n"),
            ("alpha * total +", "total +"),
        ),
    ),
    Variant(
        "a value that is chosen first",
        "solved",
        (
            (
                _IF + _STORE,
                "        old = beta * C[row, col] if beta else zero\n        C[row, col] = alpha * total + old",
            ),
        ),
    ),
)
