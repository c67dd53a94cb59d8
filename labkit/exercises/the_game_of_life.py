"""One generation of Conway's game: neighbours in two dimensions, of which the rim has fewer."""

from dataclasses import replace

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import grid_for, leave_out_blocks, one_thread_per_element, swap_rows_and_columns
from labkit.ladder import Expected

WIDE, HIGH = 32, 8
EIGHT = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])  # neighbours
NINE, FOUR = np.ones((3, 3), int), np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
ABOVE = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]])
AROUND = (
    "Eight cells are neighbours: leave out a cell only if its row and its column are both those of the cell itself."
)
ENDS = "Go on to the row below and the column to the right: a `range` leaves out its end."
RULE = "A cell lives with three neighbours, and with two only if it lives now."
EDGE = "Index -1 is the last one: test that a neighbour's row and column are not below 0."


def make_launch(rng, rows, columns, percent):
    board = (rng.random((rows, columns)) < percent / 100).astype(np.int32)
    warps = rows * -(-columns // WIDE)
    padded = np.pad(board, 1)
    is_rim = np.pad(np.zeros((max(rows - 2, 0), max(columns - 2, 0))), 1, constant_values=1)[:rows, :columns] == 1

    def expect_board(after):
        return {1: Expected(after.astype(float), np.zeros(after.shape))}

    def put_end_before_start(side):
        """Put a line of the board's end where the rim's first line is."""
        first = [(int(axis == side), 0) for axis in range(2)]
        return np.pad(np.pad(board, first, "wrap"), [(1 - before, 1) for before, _ in first])

    launch = Launch(
        label=f"a board of {rows} x {columns}, {percent}% alive",
        args=(board, unwritten_array((rows, columns), np.int32)),
        outputs=expect_board(play(padded)),
        grid=grid_for((columns, rows), (WIDE, HIGH)),
        block=(WIDE, HIGH),
        budgets=(
            Budget("global loads", 9 * rows * columns, "a cell and its 8 neighbours"),
            Budget("sectors loaded", 45 * warps, "5 for each of 9 loads of a warp"),
            Budget("global stores", rows * columns, "each cell once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((columns, rows), (WIDE, HIGH)),),
        mistakes=(
            Mistake(
                "a cell were its own neighbour",
                lambda: expect_board(play(padded, NINE)),
                "Leave out the cell itself where neighbours are counted.",
            ),
            Mistake("corners were no neighbours", lambda: expect_board(play(padded, FOUR)), AROUND),
            Mistake("corners alone were neighbours", lambda: expect_board(play(padded, EIGHT - FOUR)), AROUND),
            Mistake("neighbours below and to the right were left out", lambda: expect_board(play(padded, ABOVE)), ENDS),
            Mistake(
                "dead cells with two neighbours came to life", lambda: expect_board(play(padded, of_two=(0, 1))), RULE
            ),
            Mistake("living cells with two neighbours died", lambda: expect_board(play(padded, of_two=())), RULE),
            Mistake(
                "of cells with two neighbours the dead ones lived on",
                lambda: expect_board(play(padded, of_two=(0,))),
                RULE,
            ),
            Mistake(
                "no dead cell came to life", lambda: expect_board(play(padded) * board), f"{RULE} Test for three alone."
            ),
            Mistake(
                "no living cell died",
                lambda: expect_board(play(padded) | board),
                "Store 0 where neither rule holds.",
            ),
            Mistake(
                "the board were a ring in both directions", lambda: expect_board(play(np.pad(board, 1, "wrap"))), EDGE
            ),
            Mistake("the last row were above the first", lambda: expect_board(play(put_end_before_start(0))), EDGE),
            Mistake(
                "the last column were left of the first", lambda: expect_board(play(put_end_before_start(1))), EDGE
            ),
            Mistake(
                "row 0 and column 0 were off the board",
                lambda: expect_board(play(padded, around=leave_out_first(padded))),
                "Index 0 is on the board: compare with `>= 0` where neighbours are guarded.",
            ),
            Mistake(
                "the rim were not stored",
                lambda: expect_board(np.where(is_rim, np.nan, play(padded))),
                "Guard the loads of neighbours, and let every cell of the board be stored.",
            ),
            Mistake(
                "living cells alone were stored",
                lambda: expect_board(np.where(play(padded), 1, np.nan)),
                "Store 0 where a cell is dead: `after` holds arbitrary numbers at first.",
            ),
        ),
    )
    return replace(launch, mistakes=(*launch.mistakes, *swap_rows_and_columns(launch), *leave_out_blocks(launch)))


def leave_out_first(padded):
    """Return a board with a rim, without the cells of its row 0 and its column 0."""
    left = padded.copy()
    left[1] = left[:, 1] = 0
    return left


def play(padded, neighbours=EIGHT, of_two=(1,), around=None):
    """Return the next generation of a board with a rim around it.

    `of_two`: the cells that live on with two neighbours. `around`: the board on which neighbours are counted.
    """
    counted = padded if around is None else around
    around = (np.lib.stride_tricks.sliding_window_view(counted, (3, 3)) * neighbours).sum((2, 3))
    return (around == 3) | np.isin(padded[1:-1, 1:-1], of_two) & (around == 2)


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
        ((7, 19), (1,), (80,)),
    ),
)
