"""One generation of Conway's game: neighbours in two dimensions, of which the rim has fewer."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, unwritten_array
from labkit.exercises.problems import grid_for, one_thread_per_element
from labkit.ladder import Expected

WIDE, HIGH = 32, 8


def make_launch(rng, rows, columns, percent):
    board = (rng.random((rows, columns)) < percent / 100).astype(np.int32)
    warps = rows * -(-columns // WIDE)
    after = play(board).astype(float)
    return Launch(
        label=f"a board of {rows} x {columns}, {percent}% alive",
        args=(board, unwritten_array((rows, columns), np.int32)),
        outputs={1: Expected(after, np.zeros_like(after))},
        grid=grid_for((columns, rows), (WIDE, HIGH)),
        block=(WIDE, HIGH),
        budgets=(
            Budget("global loads", 9 * rows * columns, "a cell and its 8 neighbours"),
            Budget("sectors loaded", 45 * warps, "5 for each of 9 loads of a warp"),
            Budget("global stores", rows * columns, "each cell once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((columns, rows), (WIDE, HIGH)),),
    )


def play(board):
    """Return the next generation of a board beyond whose edges nothing lives."""
    rows, columns = board.shape
    padded = np.pad(board, 1)
    around = sum(padded[r : r + rows, c : c + columns] for r in range(3) for c in range(3)) - board
    return (around == 3) | (board == 1) & (around == 2)


EXERCISE = Exercise(
    title="The game of life",
    task="Compute one generation of Conway's game of life (1970), one thread per cell.",
    points=3,
    function="generation",
    make_launch=make_launch,
    sizes=((24, 64, 40), (13, 37, 50)),  # rows, columns, percent alive; the second is ragged
    random_sizes=(
        (range(25, 40), range(65, 99, 2), (30, 60)),
        ((1,), Above(64), (70,)),
        (Above(40), (1, 2, 3), (70,)),
        ((9, 17), (33, 34), (100,)),
    ),
)
