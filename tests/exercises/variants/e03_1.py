"""Other answers to exercise 03.1."""

from . import Variant

PRODUCTS = "            total += A_tile[y, k] * B_tile[k, x]\n"

BARRIER = "        cuda.syncthreads()\n"

VARIANTS = (
    Variant("the bug itself", "race", ((PRODUCTS + BARRIER, PRODUCTS),)),
    Variant("no barrier after the loads", "race", ((BARRIER + "        for k", "        for k"),)),
    Variant(
        "no barrier at all",
        "race",
        ((BARRIER + "        for k", "        for k"), (PRODUCTS + BARRIER, PRODUCTS)),
    ),
    Variant(
        "both barriers before the products",
        "race",
        ((PRODUCTS + BARRIER, PRODUCTS), (BARRIER, BARRIER * 2)),
    ),
    Variant(
        "a barrier that half of the block passes",
        "barrier",
        ((PRODUCTS + BARRIER, PRODUCTS + "        if y < 4:\n    " + BARRIER),),
    ),
    Variant("a tile too few", "result", (("range(0, K, TILE)", "range(0, K - TILE, TILE)"),)),
    Variant("a length of the book's", "budget", (("range(0, K, TILE)", "range(0, 40, TILE)"),)),
    Variant("a barrier inside the loop over k", "budget", ((PRODUCTS + BARRIER, PRODUCTS + "    " + BARRIER),)),
    Variant(
        "the barrier first in the loop over tiles",
        "solved",
        ((PRODUCTS + BARRIER, PRODUCTS), ("        A_tile[y, x] =", BARRIER + "        A_tile[y, x] =")),
    ),
)
