"""A transpose through shared memory whose column reads all conflict in one bank."""

from functools import partial

from labkit.checking import NO_ARITHMETIC, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import (
    depends_on_tile,
    exchanged_among_threads,
    expect,
    grid_for,
    last_block_size,
    random_matrix,
    with_zeros,
)

TILE = 32


def make_launch(rng, rows, columns):
    A = with_zeros(random_matrix(rng, rows, columns))
    sectors = rows * columns // 8
    is_whole = rows % 8 == columns % 8 == 0  # otherwise rows begin within a sector
    return Launch(
        label=f"A {rows} x {columns}, blocks of {TILE} x {TILE}",
        args=(A, unwritten_array((columns, rows))),
        outputs={1: expect(A.T.astype(float))},
        grid=grid_for((columns, rows), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget(
                "bank conflicts",
                0,
                "each costs one more wavefront",
                cure="A column's elements are WIDTH words apart: choose a WIDTH that puts 32 of them into 32 banks.",
            ),
            *(Budget("sectors loaded", sectors, "rows * columns / 8: each sector once"),) * is_whole,
            *(Budget("sectors stored", sectors, "rows * columns / 8: each sector once"),) * is_whole,
        ),
        duties=(NO_ARITHMETIC, exchanged_among_threads(last_block_size(rows, TILE) * last_block_size(columns, TILE))),
        dependences=(depends_on_tile(A.T),),
        mistakes=(
            Mistake(
                "no tile were transposed",
                partial(keep_tiles, A),
                "The thread that stores a row of T reads a column of the tile: exchange its indices in one line.",
            ),
        )
        * (rows % TILE == columns % TILE == 0),
    )


def keep_tiles(A):
    """Transpose a matrix tile by tile, with each tile as it is."""
    tiles = A.reshape(-1, TILE, A.shape[1] // TILE, TILE)
    return {1: expect(tiles.transpose(2, 1, 0, 3).reshape(A.shape[::-1]).astype(float))}


EXERCISE = Exercise(
    title="Pad the tile",
    task="- **Given**: a kernel that writes T, the transpose of A. It loads rows of A into a tile and stores columns "
    "of the tile as rows of T, so that both global accesses coalesce.\n"
    "- **Choose** WIDTH.\n"
    "- **Limits**: no bank conflict; each sector is loaded and stored once.\n"
    "- **Sizes**: any A, in blocks of 32 x 32 threads.",
    points=2,
    function="transpose",
    make_launch=make_launch,
    finds_fault=True,
    sizes=((64, 96), (40, 72)),  # rows, columns of A; the second is ragged
    random_sizes=(
        (range(72, 105, 8), range(104, 137, 8)),
        (range(33, 64, 2), range(65, 96, 2)),
        ((1,), Above(136)),
        (Above(104), (2, 5, 7)),
    ),
)
