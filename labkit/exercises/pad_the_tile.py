"""A transpose through shared memory whose column reads all meet in one bank."""

from labkit.checking import NO_ARITHMETIC, Beyond, Budget, Exercise, Launch, unwritten_array
from labkit.exercises.problems import expect, from_tile, grid_for, matrix

TILE = 32
SIZES = ((64, 96), (40, 72))  # rows, columns of A; the second is ragged


def make_launch(rng, rows, columns):
    A = matrix(rng, rows, columns)
    sectors = rows * columns // 8
    whole = rows % 8 == columns % 8 == 0  # otherwise rows begin within a sector
    return Launch(
        label=f"A {rows} x {columns}, blocks of {TILE} x {TILE}",
        args=(A, unwritten_array((columns, rows))),
        outputs={1: expect(A.T.astype(float))},
        grid=grid_for((columns, rows), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget("bank conflicts", 0, "none"),
            *(Budget("sectors loaded", sectors, "rows * columns / 8: each sector once"),) * whole,
            *(Budget("sectors stored", sectors, "rows * columns / 8: each sector once"),) * whole,
        ),
        duties=(NO_ARITHMETIC,),
        dependences=(from_tile(A.T),),
    )


EXERCISE = Exercise(
    id="pad-the-tile",
    title="Pad the tile",
    task="Choose WIDTH so that reading a column of the tile meets 32 different banks.",
    points=2,
    function="transpose",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(
        (range(72, 105, 8), range(104, 137, 8)),
        (range(33, 64, 2), range(65, 96, 2)),
        ((1,), Beyond(136)),
        (Beyond(104), (2, 5, 7)),
    ),
)
