"""Exercise 02.2: a matrix sum whose kernel mixes up rows and columns."""

import numpy as np

from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, grid_for, matrix, unwritten

SHAPES = ((16, 96), (70, 45))  # rows, columns
BLOCK = (16, 8)


def launches(rng):
    for rows, columns in SHAPES:
        A, B = matrix(rng, rows, columns), matrix(rng, rows, columns)
        yield Launch(
            label=f"{rows} x {columns}, blocks of {BLOCK[0]} x {BLOCK[1]}",
            args=(A, B, unwritten((rows, columns))),
            outputs={2: expect((A + B).astype(np.float64))},
            grid=grid_for((columns, rows), BLOCK),
            block=BLOCK,
        )


_MAPPING = "col, row = cuda.grid(2)"
_GUARD = "row < C.shape[0] and col < C.shape[1]"

EXERCISE = Exercise(
    id="02.2",
    title="Rows and columns",
    task="This sum of two matrices is right when they are square. Find out why it is not otherwise, and mend it.",
    points=2,
    function="add",
    launches=launches,
    variants=(
        Variant("the bug itself", "unwritten", ((_MAPPING, "row, col = cuda.grid(2)"),)),
        Variant("the guard swapped instead", "unwritten", ((_GUARD, "row < C.shape[1] and col < C.shape[0]"),)),
        Variant("no guard", "bounds", ((_GUARD, "True"),)),
        Variant("half a guard", "bounds", ((_GUARD, "col < C.shape[1]"),)),
        Variant("transposed reads", "bounds", (("A[row, col]", "A[col, row]"),)),
        Variant("a difference", "result", (("A[row, col] + B", "A[row, col] - B"),)),
        Variant("other names", "solved", ((_MAPPING, "x, y = cuda.grid(2)\n    col = x\n    row = y"),)),
    ),
)
