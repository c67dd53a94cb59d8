"""A matrix sum whose kernel mixes up rows and columns."""

from dataclasses import replace
from math import prod

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import (
    expect,
    grid_for,
    leave_out_blocks,
    one_thread_per_element,
    random_matrix,
    swap_rows_and_columns,
    with_zeros,
)


def make_launch(rng, rows, columns, *block):
    A, B = with_zeros(random_matrix(rng, rows, columns)), random_matrix(rng, rows, columns)
    grid = grid_for((columns, rows), block)
    warps = prod(grid) * -(-prod(block) // 32)
    launch = Launch(
        label=f"{rows} x {columns}, blocks of {block[0]} x {block[1]}",
        args=(A, B, unwritten_array((rows, columns))),
        outputs={2: expect((A + B).astype(np.float64))},
        grid=grid,
        block=block,
        budgets=(Budget("load requests", 2 * warps, "2 per warp"),),
        duties=(one_thread_per_element((columns, rows), block),),
    )
    subtracted = Mistake("B were subtracted", lambda: {2: expect((A - B).astype(np.float64))}, "Write `+`, not `-`.")
    return replace(launch, mistakes=(subtracted, *swap_rows_and_columns(launch), *leave_out_blocks(launch)))


EXERCISE = Exercise(
    title="Rows and columns",
    task="This sum of two matrices is right when they are square. Find out why it is not otherwise, and fix it.",
    points=2,
    function="add",
    make_launch=make_launch,
    finds_fault=True,
    sizes=((16, 96, 16, 8), (70, 45, 16, 8)),  # rows, columns, threads per block along x and along y
    random_sizes=(
        (range(75, 120, 2), range(101, 140, 2), range(8, 33, 8), range(4, 9)),
        ((1,), Above(140), (32,), (4, 5)),
        (Above(120), (1, 3, 7), (8,), (7, 8)),
        (Above(4096), (1, 2), (2,), (128,)),
    ),
)
