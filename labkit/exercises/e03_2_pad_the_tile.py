"""Exercise 03.2: a transpose through shared memory whose column reads all meet in one bank."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, grid_for, matrix, unwritten

TILE = 32
SIZES = ((64, 96), (40, 72))  # rows, columns of A; the second is ragged


def launch(rng, rows, columns):
    A = matrix(rng, rows, columns)
    sectors = rows * columns // 8
    return Launch(
        label=f"A {rows} x {columns}, blocks of {TILE} x {TILE}",
        args=(A, unwritten((columns, rows))),
        outputs={1: expect(A.T.astype(float))},
        grid=grid_for((columns, rows), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget("sectors loaded", sectors, "rows * columns / 8: each sector once"),
            Budget("sectors stored", sectors, "rows * columns / 8: each sector once"),
            Budget("bank conflicts", 0, "none"),
        ),
    )


EXERCISE = Exercise(
    id="03.2",
    title="Pad the tile",
    task="Choose WIDTH so that reading a column of the tile meets 32 different banks.",
    points=2,
    function="transpose",
    launch=launch,
    sizes=SIZES,
    drawn=((range(72, 105, 8), range(104, 137, 8)),),
    variants=(
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
    ),
)
