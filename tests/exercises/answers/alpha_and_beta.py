"""Other answers to alpha-and-beta."""

from . import Answer, right, shortcut, wrong
from .shared import by_shuffles

_IF = "        if beta == 0:\n            C[row, col] = alpha * total\n        else:\n    "

_STORE = "        C[row, col] = alpha * total + beta * C[row, col]"

_TILED_05_4 = "        C[row, col] = alpha * total + (beta * C[row, col] if beta != 0 else zero)"

ONES_SCALED = (
    "    if row < M and col < N:\n        if",
    "    total *= A_tile[y, x]\n    if row < M and col < N:\n        if",
)

VARIANTS = (
    Answer("C is read although beta is 0", "result", ((_IF, ""),)),
    Answer("alpha forgotten", "result", (("alpha * total +", "total +"),), mistake="alpha were left out"),
    Answer("beta forgotten", "result", (("beta * C[row, col]", "C[row, col]"),), mistake="beta were left out"),
    Answer(
        "alpha for both",
        "result",
        (("alpha * total + beta * C[row, col]", "alpha * (total + beta * C[row, col])"),),
        mistake="alpha scaled beta * C, too",
    ),
    Answer(
        "alpha and beta swapped",
        "result",
        (("alpha * total + beta * C[row, col]", "beta * total + alpha * C[row, col]"),),
        mistake="alpha and beta were exchanged",
    ),
    Answer("nothing of C", "result", ((" + beta * C[row, col]", ""),), mistake="C were left out"),
    Answer(
        "added to C",
        "result",
        (("            C[row, col] = alpha * total + beta", "            C[row, col] += alpha * total + beta"),),
        mistake="the result were added to C",
    ),
    Answer("a negative beta taken for none", "result", (("if beta == 0:", "if beta <= 0:"),)),
    Answer("a length of the book's", "result", (("range(0, K, TILE)", "range(0, min(K, 48), TILE)"),)),
    Answer("without a guard", "bounds", (("if row < M and col < N:", "if row < M:"),)),
    Answer("in float64", "budget", (("alpha * total + beta", "1.0 * alpha * total + beta"),)),
    Answer(
        "C is loaded and then dropped",
        "budget",
        (
            (
                "            C[row, col] = alpha * total\n",
                "            old = C[row, col]\n            C[row, col] = alpha * (total if old == 0 else total)\n",
            ),
        ),
    ),
    Answer(
        "alpha times each element of A",
        "solved",
        (
            ("A_tile[y, x] = A[row, start + x] if", "A_tile[y, x] = alpha * A[row, start + x] if"),
            ("C[row, col] = alpha * total\n", "C[row, col] = total\n"),
            ("alpha * total +", "total +"),
        ),
    ),
    Answer(
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

RIGHT = (
    right(
        "in one line",
        (
            "        if beta == 0:\n            C[row, col] = alpha * total\n        else:\n"
            "            C[row, col] = alpha * total + beta * C[row, col]",
            _TILED_05_4,
        ),
    ),
)

WRONG = (
    wrong(
        "a NaN in C is left out",
        (
            "            C[row, col] = alpha * total + beta * C[row, col]",
            "            old = C[row, col]\n"
            "            C[row, col] = alpha * total + (beta * old if old == old else zero)",
        ),
    ),
    wrong("the size of alpha", ("C[row, col] = alpha * total + beta", "C[row, col] = abs(alpha) * total + beta")),
    wrong("the size of beta", ("beta * C[row, col]", "abs(beta) * C[row, col]")),
    wrong("beta of 2 at most", ("beta * C[row, col]", "max(np.float32(-2), min(beta, np.float32(2))) * C[row, col]")),
    wrong("a small beta taken for 0", ("if beta == 0:", "if abs(beta) < np.float32(0.5):")),
    wrong("beta of 1 taken for 0", ("if beta == 0:", "if beta == 0 or beta == 1:")),
    wrong("nothing where alpha is 0", ("    if row < M and col < N:", "    if row < M and col < N and alpha != 0:")),
    wrong("a NaN in C taken for 0", ("        if beta == 0:", "        if C[row, col] != C[row, col]:")),
    wrong("alpha of 1 where beta is 0", ("C[row, col] = alpha * total\n", "C[row, col] = total\n")),
    wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 64), TILE)")),
    wrong("a tiny beta taken for 0", ("if beta == 0:", "if abs(beta) < np.float32(1e-6):")),
    wrong("nothing where K is 0", ("    if row < M and col < N:", "    if row < M and col < N and K > 0:")),
    wrong(
        "nothing stored where both are 0",
        ("    if row < M and col < N:", "    if row < M and col < N and (alpha != 0 or beta != 0):"),
    ),
)

SHORTCUTS = (
    shortcut("A by shuffles, times ones from its tile", *by_shuffles("y % 2 * 16 + k"), ONES_SCALED),
    shortcut(
        "C read where beta is 0, by an atomic",
        (
            "            C[row, col] = alpha * total\n",
            "            old = cuda.atomic.add(C, (row, col), zero)\n"
            "            C[row, col] = alpha * (total if old == 0 else total)\n",
        ),
    ),
    shortcut(
        "no tiles, by atomics",
        (
            "            total += A_tile[y, k] * B_tile[k, x]\n",
            "            if start + k < K and row < M and col < N:\n"
            "                total += cuda.atomic.add(A, (row, start + k), zero) * cuda.atomic.add(B, "
            "(start + k, col), zero)\n",
        ),
    ),
    shortcut(
        "one warp of each block multiplies",
        (
            "    total = zero\n",
            """    sums = cuda.local.array(8, np.float32)
    for i in range(8):
        sums[i] = zero
""",
        ),
        (
            "        for k in range(TILE):\n            total += A_tile[y, k] * B_tile[k, x]\n",
            """        for i in range(8 * (y < 2)):
            for k in range(TILE):
                sums[i] += A_tile[y + 2 * i, k] * B_tile[k, x]
""",
        ),
        (
            """    if row < M and col < N:
        if beta == 0:
            C[row, col] = alpha * total
        else:
            C[row, col] = alpha * total + beta * C[row, col]""",
            """    for i in range(8 * (y < 2)):
        row = cuda.blockIdx.y * TILE + y + 2 * i
        if row < M and col < N:
            C[row, col] = alpha * sums[i] + (beta * C[row, col] if beta != 0 else zero)""",
        ),
    ),
)
