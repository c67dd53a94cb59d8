"""Exercise 06.2: tiles with rows of 128 bytes, whose `ldmatrix` meet in the same banks."""

from labkit.exercises.budget import SHARED_BYTES, Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import half_launch, whole

SIZES = ((32, 8, 128), (16, 24, 64))  # M, N, K, rounded up to multiples of 16, 8 and 64
BUDGETS = (
    Budget("bank conflicts", 0, "none"),
    Budget(SHARED_BYTES, (16 + 8) * 128, "24 rows of 128 bytes: no padding"),
)


def launch(rng, M, N, K):
    return half_launch(rng, whole(M, 16), whole(N, 8), whole(K, 64), part=(16, 8), block=(32,), budgets=BUDGETS)


SWIZZLED = "    return piece ^ row % 8\n"

EXERCISE = Exercise(
    id="06.2",
    title="Swizzle the tiles",
    task="Choose for each 16-byte piece of a row where in the row it lies, so that no `ldmatrix` meets a bank twice.",
    points=2,
    function="no_conflicts",
    launch=launch,
    sizes=SIZES,
    drawn=((range(16, 49, 16), range(32, 41, 8), range(192, 257, 64)),),
    variants=(
        Variant("the bug itself", "budget", ((SWIZZLED, "    return piece\n"),)),
        Variant("two places alone", "budget", ((SWIZZLED, "    return piece ^ row % 2\n"),)),
        Variant("four places alone", "budget", ((SWIZZLED, "    return piece ^ row % 4\n"),)),
        Variant("every row moved alike", "budget", ((SWIZZLED, "    return piece ^ 5\n"),)),
        Variant("all pieces of a row in one place", "race", ((SWIZZLED, "    return row % 8\n"),)),
        Variant("out of the row", "bounds", ((SWIZZLED, "    return piece + row % 8\n"),)),
        Variant(
            "rows padded by one piece",
            "budget",
            (
                (SWIZZLED, "    return piece\n"),
                ("array((16, 32)", "array((16, 36)"),
                ("array((8, 32)", "array((8, 36)"),
            ),
        ),
        Variant(
            "only what is written is moved",
            "result",
            (("(row, place(row, step + lane // 16) * 4)", "(row, (step + lane // 16) * 4)"),),
        ),
        Variant(
            "no barrier before the reads",
            "race",
            (("        cuda.syncthreads()\n        for step", "        for step"),),
        ),
        Variant(
            "the XOR with the whole row, kept in the row", "solved", ((SWIZZLED, "    return (piece ^ row) % 8\n"),)
        ),
        Variant("a rotation instead", "solved", ((SWIZZLED, "    return (piece + row) % 8\n"),)),
        Variant("a rotation the other way", "solved", ((SWIZZLED, "    return (piece - row) % 8\n"),)),
    ),
)
