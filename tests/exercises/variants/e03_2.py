"""Other answers to exercise 03.2."""

from . import Variant

VARIANTS = (
    Variant("the bug itself", "budget", (("WIDTH = TILE + 1", "WIDTH = TILE"),)),
    Variant("two columns of padding", "budget", (("WIDTH = TILE + 1", "WIDTH = TILE + 2"),)),
    Variant("a tile too narrow", "bounds", (("WIDTH = TILE + 1", "WIDTH = TILE - 1"),)),
    Variant("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Variant("no shared memory at all", "budget", (("T[row, col] = tile[x, y]", "T[row, col] = A[col, row]"),)),
    Variant(
        "no guard",
        "bounds",
        (("    if row < A.shape[0] and col < A.shape[1]:\n        tile", "    tile"),),
    ),
    Variant("a copy instead of a transpose", "result", (("= tile[x, y]", "= tile[y, x]"),)),
    Variant(
        "the book's shapes",
        "unwritten",
        (("row < T.shape[0] and col < T.shape[1]", "row < min(96, T.shape[0]) and col < T.shape[1]"),),
    ),
    Variant("three columns of padding", "solved", (("WIDTH = TILE + 1", "WIDTH = TILE + 3"),)),
    Variant("an odd width of its own", "solved", (("WIDTH = TILE + 1", "WIDTH = 65"),)),
)
