"""A transposed tile whose stores conflict in a few banks."""

import numpy as np

from labkit.checking import NO_ARITHMETIC, Above, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import SHARED_BYTES
from labkit.exercises.problems import (
    depends_on_tile,
    exchanged_among_threads,
    expect,
    last_block_size,
    move_in_tiles,
    random_matrix,
    with_zeros,
)

BM, BK = 64, 8


def make_launch(rng, rows, columns):
    A = with_zeros(random_matrix(rng, rows, columns))
    grid = -(-columns // BK), -(-rows // BM)
    last_elements = last_block_size(rows, BM) * last_block_size(columns, BK)
    few_sectors = Duty("sectors loaded", 0, "2 for the BK neighbours of each row", at_most=2 * rows * grid[0])
    return Launch(
        label=f"A {rows} x {columns}, tiles of {BM} x {BK}, {BM} threads",
        args=(A, unwritten_array((columns, rows))),
        outputs={1: expect(A.T.astype(float))},
        grid=grid,
        block=(BM,),
        budgets=(
            Budget(SHARED_BYTES, BM * BK * 4, "BM * BK * 4: the tile, without padding"),
            Budget("global loads", rows * columns, "each element once"),
            Budget("bank conflicts", 0, "each costs one more wavefront"),
        ),
        duties=(NO_ARITHMETIC, few_sectors, exchanged_among_threads(last_elements)),
        dependences=(depends_on_tile(A.T),),
        mistakes=move_in_tiles(A.T, BM, np.arange(columns) % BK),
    )


EXERCISE = Exercise(
    title="Move the banks",
    task="A's tile is stored transposed, and eight lanes of each store write to the same bank. "
    "Choose places in the tile so that no bank conflict is left, without more shared memory.",
    points=2,
    function="turned",
    make_launch=make_launch,
    sizes=((128, 24), (100, 30)),  # rows, columns of A; the second is ragged
    random_sizes=((range(131, 190, 2), range(9, 24, 2)), ((1,), Above(30)), (Above(190), (1, 3, 7))),
)
