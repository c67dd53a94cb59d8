"""Other answers to choose-the-tile."""

from . import Answer, right, shortcut, wrong
from .shared import ATOMIC_A, ATOMIC_B, by_shuffles, naive


def _tile(what, text):
    return right(what, ("TILE = 16\n", f"{text}\n"))


VARIANTS = (
    Answer("the tile that the exercise starts with", "budget", (("TILE = 16", "TILE = 4"),)),
    Answer("a tile too small", "budget", (("TILE = 16", "TILE = 8"),)),
    Answer("a tile too large for the budget", "budget", (("TILE = 16", "TILE = 32"),)),
    Answer("more threads than a block may have", "launch", (("TILE = 16", "TILE = 40"),)),
    Answer("no tile", "launch", (("TILE = 16", "TILE = 0"),)),
    Answer("a tile that is no whole number", "launch", (("TILE = 16", "TILE = 16.0"),)),
    Answer("a length of the book's", "result", (("range(0, K, TILE)", "range(0, 64, TILE)"),)),
    Answer("an odd tile within both budgets", "solved", (("TILE = 16", "TILE = 19"),)),
    Answer("alpha forgotten", "result", (("alpha * total", "total"),), mistake="alpha were left out"),
    Answer(
        "a tile too few",
        "result",
        (("range(0, K, TILE)", "range(0, K - TILE, TILE)"),),
        mistake="the last tile along K were left out",
    ),
    Answer(
        "whole tiles alone",
        "result",
        (("range(0, K, TILE)", "range(0, K // TILE * TILE, TILE)"),),
        mistake="the end of K that fills no whole tile were left out",
    ),
    Answer(
        "the last product alone",
        "result",
        (("total += A_tile", "total = A_tile"),),
        mistake="only the last product of each sum were kept",
    ),
)

RIGHT = (
    _tile("added to", "TILE = 4\nTILE += 12"),
    _tile("multiplied", "TILE = 4\nTILE *= 4"),
    _tile("in a chain", "P = TILE = 16"),
    _tile("a length", "TILE = len((1, 2, 3, 4)) ** 2"),
    _tile("a ceiling", "from math import ceil\nTILE = ceil(15.2)"),
    _tile("a root", "import math\nTILE = int(math.sqrt(256))"),
    _tile("unpacked", "(TILE, OTHER), REST = (16, 8), 4"),
    _tile("an entry", "SIZES = 8, 16, 32\nTILE = SIZES[1]"),
    _tile("annotated", "TILE: int = max(8, 16)"),
    _tile("a list of targets", "[TILE, OTHER] = 16, 32"),
)

WRONG = (
    wrong("the size of alpha", ("alpha * total", "abs(alpha) * total")),
    wrong("alpha of 0 taken for 1", ("alpha * total", "(alpha if alpha != 0 else np.float32(1)) * total")),
    wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 100), TILE)")),
)

SHORTCUTS = (
    shortcut(
        "A by shuffles, times ones from its tile",
        *by_shuffles("y % 2 * 16 + k"),
        ("= alpha * total", "= alpha * total * A_tile[y, x]"),
    ),
    shortcut(
        "no tiles, by atomics",
        cell=naive(
            "tuned_matmul",
            "alpha, A, B, C",
            f"{ATOMIC_A} * {ATOMIC_B}",
            "C[row, col] = alpha * total",
            head="TILE = 16\n",
        ),
    ),
    shortcut(
        "a small tile, loads by atomics",
        ("TILE = 16", "TILE = 4"),
        ("A[row, start + x] if", "cuda.atomic.add(A, (row, start + x), zero) if"),
        ("B[start + y, col] if", "cuda.atomic.add(B, (start + y, col), zero) if"),
    ),
    shortcut("a small tile", ("TILE = 16", "TILE = 8")),
    shortcut(
        "a kernel made elsewhere", cell="from labkit.gemm.fp32.s03_tiled import tiled as tuned_matmul\nTILE = 16\n"
    ),
)
