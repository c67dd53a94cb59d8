"""Exercise 03.1: a tiled matmul without the barrier that protects the tile still being read."""

from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import matmul_launch

SIZES = ((24, 40, 32), (19, 26, 37))  # M, N, K; the second is ragged
PRODUCTS = "            total += A_tile[y, k] * B_tile[k, x]\n"
BARRIER = "        cuda.syncthreads()\n"


def launch(rng, M, N, K):
    return matmul_launch(rng, M, N, K, block=(8, 8))


EXERCISE = Exercise(
    id="03.1",
    title="Put the barrier back",
    task="Some threads overwrite a tile that others still read. Add what is missing.",
    points=2,
    function="two_barriers",
    launch=launch,
    sizes=SIZES,
    drawn=((range(25, 50), range(41, 60), range(41, 70)),),
    variants=(
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
        Variant("a length of the book's", "result", (("range(0, K, TILE)", "range(0, 40, TILE)"),)),
        Variant("a barrier inside the loop over k", "solved", ((PRODUCTS + BARRIER, PRODUCTS + "    " + BARRIER),)),
        Variant(
            "the barrier first in the loop over tiles",
            "solved",
            ((PRODUCTS + BARRIER, PRODUCTS), ("        A_tile[y, x] =", BARRIER + "        A_tile[y, x] =")),
        ),
    ),
)
