"""Other answers to choose-the-register-tile."""

from . import Answer, right, shortcut, wrong

VARIANTS = (
    Answer(
        "the tiles that the exercise starts with",
        "budget",
        (("BM, BN, TM, TN = 32, 32, 4, 4", "BM, BN, TM, TN = 16, 16, 2, 2"),),
    ),
    Answer("a block's tile too small", "budget", (("= 32, 32, 4, 4", "= 16, 32, 4, 4"),)),
    Answer("a block's tile too large", "budget", (("= 32, 32, 4, 4", "= 64, 64, 4, 4"),)),
    Answer("a thread's tile too small", "budget", (("= 32, 32, 4, 4", "= 32, 32, 4, 2"),)),
    Answer("a thread's tile too large", "budget", (("= 32, 32, 4, 4", "= 32, 32, 8, 8"),)),
    Answer("a long thin tile of as many outputs", "budget", (("= 32, 32, 4, 4", "= 32, 32, 8, 2"),)),
    Answer("a tile that the threads cannot share out", "launch", (("= 32, 32, 4, 4", "= 32, 32, 5, 4"),)),
    Answer("no tile", "launch", (("= 32, 32, 4, 4", "= 32, 32, 0, 4"),)),
    Answer("a length of the book's", "result", (("range(0, K, BK)", "range(0, 16, BK)"),)),
    Answer("a wider tile within all budgets", "solved", (("= 32, 32, 4, 4", "= 32, 64, 4, 4"),)),
    Answer("a higher tile within all budgets", "solved", (("= 32, 32, 4, 4", "= 64, 32, 4, 4"),)),
    Answer("alpha forgotten", "result", (("alpha * sums[i, j]", "sums[i, j]"),), mistake="alpha were left out"),
    Answer(
        "a tile too few",
        "result",
        (("range(0, K, BK)", "range(0, K - BK, BK)"),),
        mistake="the last tile along K were left out",
    ),
    Answer(
        "whole tiles alone",
        "result",
        (("range(0, K, BK)", "range(0, K // BK * BK, BK)"),),
        mistake="the end of K that fills no whole tile were left out",
    ),
    Answer(
        "the last product alone",
        "result",
        (("sums[i, j] += a", "sums[i, j] = a"),),
        mistake="only the last product of each sum were kept",
    ),
)

RIGHT = (right("in a chain", ("BM, BN, TM, TN = 32, 32, 4, 4", "BM = BN = 32\nTM = TN = 4")),)

WRONG = (
    wrong("the longest sum that is published", ("range(0, K, BK)", "range(0, min(K, 100), BK)")),
    wrong("the columns that are published", ("if row < M and col < N:", "if row < M and col < min(N, 128):")),
)

SHORTCUTS = (
    shortcut(
        "small tiles, loads by atomics",
        ("= 32, 32, 4, 4", "= 16, 16, 4, 4"),
        ("A[top + row, start + k] if", "cuda.atomic.add(A, (top + row, start + k), zero) if"),
        ("B[start + k, left + col] if", "cuda.atomic.add(B, (start + k, left + col), zero) if"),
    ),
    shortcut(
        "small parts of a tile, reads by atomics",
        ("= 32, 32, 4, 4", "= 32, 32, 2, 2"),
        ("= A_tile[y + i * rows, k]", "= cuda.atomic.add(A_tile, (y + i * rows, k), zero)"),
        ("= B_tile[k, x + j * columns]", "= cuda.atomic.add(B_tile, (k, x + j * columns), zero)"),
    ),
)
