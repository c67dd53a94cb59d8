"""Exercise 02.2: a matrix sum whose kernel mixes up rows and columns."""

from math import prod

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, grid_for, matrix, unwritten

SIZES = ((16, 96, 16, 8), (70, 45, 16, 8))  # rows, columns, threads a block along x and along y


def launch(rng, rows, columns, *block):
    A, B = matrix(rng, rows, columns), matrix(rng, rows, columns)
    grid = grid_for((columns, rows), block)
    warps = prod(grid) * -(-prod(block) // 32)
    return Launch(
        label=f"{rows} x {columns}, blocks of {block[0]} x {block[1]}",
        args=(A, B, unwritten((rows, columns))),
        outputs={2: expect((A + B).astype(np.float64))},
        grid=grid,
        block=block,
        budgets=(Budget("load requests", 2 * warps, "2 for each warp"),),
    )


_ALONE = """@cuda.jit
def add(A, B, C):
    col, row = cuda.grid(2)
    if row == 0 and col == 0:
        for i in range(C.shape[0]):
            for j in range(C.shape[1]):
                C[i, j] = A[i, j] + B[i, j]
"""
_MAPPING = "col, row = cuda.grid(2)"
_GUARD = "row < C.shape[0] and col < C.shape[1]"

EXERCISE = Exercise(
    id="02.2",
    title="Rows and columns",
    task="This sum of two matrices is right when they are square. Find out why it is not otherwise, and mend it.",
    points=2,
    function="add",
    launch=launch,
    sizes=SIZES,
    drawn=((range(75, 120), range(100, 140), range(8, 33, 8), range(4, 9)),),
    variants=(
        Variant("the bug itself", "unwritten", ((_MAPPING, "row, col = cuda.grid(2)"),)),
        Variant("the guard swapped instead", "unwritten", ((_GUARD, "row < C.shape[1] and col < C.shape[0]"),)),
        Variant("no guard", "bounds", ((_GUARD, "True"),)),
        Variant("half a guard", "bounds", ((_GUARD, "col < C.shape[1]"),)),
        Variant("transposed reads", "bounds", (("A[row, col]", "A[col, row]"),)),
        Variant("a difference", "result", (("A[row, col] + B", "A[row, col] - B"),)),
        Variant("one thread does everything", "budget", cell=_ALONE),
        Variant("the book's rows", "unwritten", ((_GUARD, "row < 70 and row < C.shape[0] and col < C.shape[1]"),)),
        Variant("other names", "solved", ((_MAPPING, "x, y = cuda.grid(2)\n    col = x\n    row = y"),)),
    ),
)
