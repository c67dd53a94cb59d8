"""Other answers to turn-it-over."""

from . import Answer, right, shortcut, wrong

_PLAIN = """@njit
def turned(A, T):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            T[j, i] = A[i, j]
"""
_STRIPS = """@njit
def turned(A, T):
    M, N = A.shape
    for j0 in range(0, N, 16):
        for i in range(M):
            for j in range(j0, min(j0 + 16, N)):
                T[j, i] = A[i, j]
"""
_ROWS_FIRST = """            for i in range(i0, min(i0 + 16, M)):
                for j in range(j0, min(j0 + 16, N)):
"""
_COLUMNS_FIRST = """            for j in range(j0, min(j0 + 16, N)):
                for i in range(i0, min(i0 + 16, M)):
"""

VARIANTS = (
    Answer("two plain loops", "budget", cell=_PLAIN),
    Answer(
        "the loops exchanged",
        "budget",
        cell=_PLAIN.replace(
            "    for i in range(A.shape[0]):\n        for j in range(A.shape[1]):\n",
            "    for j in range(A.shape[1]):\n        for i in range(A.shape[0]):\n",
        ),
    ),
    Answer(
        "tiles that do not fit",
        "budget",
        (
            ("range(0, M, 16)", "range(0, M, 700)"),
            ("range(0, N, 16)", "range(0, N, 700)"),
            ("min(i0 + 16, M)", "min(i0 + 700, M)"),
            ("min(j0 + 16, N)", "min(j0 + 700, N)"),
        ),
    ),
    Answer(
        "tiles of two",
        "budget",
        (
            ("range(0, M, 16)", "range(0, M, 2)"),
            ("range(0, N, 16)", "range(0, N, 2)"),
            ("min(i0 + 16, M)", "min(i0 + 2, M)"),
            ("min(j0 + 16, N)", "min(j0 + 2, N)"),
        ),
    ),
    Answer("past the edge of A", "bounds", (("min(i0 + 16, M)", "i0 + 16"),)),
    Answer(
        "the ragged rows left out",
        "unwritten",
        (("range(0, M, 16)", "range(0, M - 15, 16)"),),
        mistake="rows of A after the last whole tile were left out",
    ),
    Answer(
        "the ragged columns left out",
        "unwritten",
        (("range(0, N, 16)", "range(0, N - 15, 16)"),),
        mistake="columns of A after the last whole tile were left out",
    ),
    Answer("a copy", "bounds", (("T[j, i] = A[i, j]", "T[i, j] = A[i, j]"),)),
    Answer("added to what T held", "result", (("T[j, i] = ", "T[j, i] += "),)),
    Answer(
        "tiles turned, their elements not",
        "result",
        (("T[j, i] = A[i, j]", "T[j, i] = A[min(i0 + j - j0, M - 1), min(j0 + i - i0, N - 1)]"),),
    ),
    Answer(
        "rows of T's tile first",
        "solved",
        (
            (
                _ROWS_FIRST,
                _COLUMNS_FIRST,
            ),
        ),
    ),
    Answer(
        "tiles of 8",
        "solved",
        (
            ("range(0, M, 16)", "range(0, M, 8)"),
            ("range(0, N, 16)", "range(0, N, 8)"),
            ("min(i0 + 16, M)", "min(i0 + 8, M)"),
            ("min(j0 + 16, N)", "min(j0 + 8, N)"),
        ),
    ),
    Answer(
        "both ragged sides left out",
        "unwritten",
        (("range(0, M, 16)", "range(0, M // 16 * 16, 16)"), ("range(0, N, 16)", "range(0, N // 16 * 16, 16)")),
        mistake="rows and columns of A after the last whole tile were left out",
    ),
    Answer(
        "the first tile again and again",
        "unwritten",
        (("range(i0, min(i0 + 16, M))", "range(min(16, M))"), ("range(j0, min(j0 + 16, N))", "range(min(16, N))")),
        mistake="only the first tile were moved",
    ),
)

RIGHT = (
    right("strips of columns", cell=_STRIPS),
    right(
        "tiles column by column",
        (
            "    for i0 in range(0, M, 16):\n        for j0 in range(0, N, 16):\n",
            "    for j0 in range(0, N, 16):\n        for i0 in range(0, M, 16):\n",
        ),
    ),
    right("tiles of 24 rows", ("range(0, M, 16)", "range(0, M, 24)"), ("min(i0 + 16, M)", "min(i0 + 24, M)")),
    right(
        "a while loop", ("    for i0 in range(0, M, 16):\n", "    i0 = -16\n    while i0 + 16 < M:\n        i0 += 16\n")
    ),
    right(
        "guards in place of `min`",
        ("min(i0 + 16, M)", "i0 + 16"),
        (
            "                    T[j, i]",
            "                    if i >= M:\n                        break\n                    T[j, i]",
        ),
    ),
)

WRONG = (
    wrong("the rows that are published", ("    M, N = A.shape\n", "    M, N = min(A.shape[0], 903), A.shape[1]\n")),
    wrong("the columns that are published", ("    M, N = A.shape\n", "    M, N = A.shape[0], min(A.shape[1], 1021)\n")),
    wrong("an even number of columns", ("min(j0 + 16, N)", "min(j0 + 16, max(N // 2 * 2, 1))")),
    wrong(
        "a first row that is there",
        (
            "                    T[j, i] = A[i, j]",
            "                    if i + j > 0:\n                        T[j, i] = A[i, j]",
        ),
    ),
    wrong(
        "zeros left out",
        (
            "                    T[j, i] = A[i, j]",
            "                    if A[i, j] != 0:\n                        T[j, i] = A[i, j]",
        ),
    ),
)

SHORTCUTS = (
    shortcut("whole arrays", cell="@njit\ndef turned(A, T):\n    T[:, :] = A.T\n"),
    shortcut(
        "whole columns", cell="@njit\ndef turned(A, T):\n    for i in range(A.shape[0]):\n        T[:, i] = A[i]\n"
    ),
)
