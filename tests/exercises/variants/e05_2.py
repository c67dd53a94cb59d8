"""Other answers to exercise 05.2."""

from . import Variant

VARIANTS = (
    Variant(
        "the tiles that the exercise starts with",
        "budget",
        (("BM, BN, TM, TN = 32, 32, 4, 4", "BM, BN, TM, TN = 16, 16, 2, 2"),),
    ),
    Variant("a block's tile too small", "budget", (("= 32, 32, 4, 4", "= 16, 32, 4, 4"),)),
    Variant("a block's tile too large", "budget", (("= 32, 32, 4, 4", "= 64, 64, 4, 4"),)),
    Variant("a thread's tile too small", "budget", (("= 32, 32, 4, 4", "= 32, 32, 4, 2"),)),
    Variant("a thread's tile too large", "budget", (("= 32, 32, 4, 4", "= 32, 32, 8, 8"),)),
    Variant("a long thin tile of as many outputs", "budget", (("= 32, 32, 4, 4", "= 32, 32, 8, 2"),)),
    Variant("a tile that the threads cannot share out", "launch", (("= 32, 32, 4, 4", "= 32, 32, 5, 4"),)),
    Variant("no tile", "launch", (("= 32, 32, 4, 4", "= 32, 32, 0, 4"),)),
    Variant("a length of the book's", "result", (("range(0, K, BK)", "range(0, 16, BK)"),)),
    Variant("a wider tile within all budgets", "solved", (("= 32, 32, 4, 4", "= 32, 64, 4, 4"),)),
    Variant("a higher tile within all budgets", "solved", (("= 32, 32, 4, 4", "= 64, 32, 4, 4"),)),
)
