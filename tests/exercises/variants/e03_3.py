"""Other answers to exercise 03.3."""

from . import Variant

VARIANTS = (
    Variant("the tile that the exercise starts with", "budget", (("TILE = 16", "TILE = 4"),)),
    Variant("a tile too small", "budget", (("TILE = 16", "TILE = 8"),)),
    Variant("a tile too large for the budget", "budget", (("TILE = 16", "TILE = 32"),)),
    Variant("more threads than a block may have", "launch", (("TILE = 16", "TILE = 40"),)),
    Variant("no tile", "launch", (("TILE = 16", "TILE = 0"),)),
    Variant("a tile that is no whole number", "launch", (("TILE = 16", "TILE = 16.0"),)),
    Variant("a length of the book's", "budget", (("range(0, K, TILE)", "range(0, 64, TILE)"),)),
    Variant("an odd tile within both budgets", "solved", (("TILE = 16", "TILE = 19"),)),
)
