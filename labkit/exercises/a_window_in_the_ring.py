"""A window that slides down the rows of an image, which a ring of asynchronous copies brings one by one."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Dependence, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, EXPOSED_LOADS, LOCAL_NUMBERS, PLAIN_FLOPS, SHARED_BYTES, STORING_THREADS
from labkit.exercises.problems import EPS, expect, last_block_size, random_matrix, shared_among_threads
from labkit.ladder import Expected
from labkit.simulator.disturbance import COPIES

WIDTH, WINDOW, STAGES = 128, 3, 5  # threads per block, rows and columns of a window, rows in shared memory
OUTPUTS = WIDTH - WINDOW + 1  # per block and row


def make_launch(rng, rows, columns):
    rows, columns = max(rows, WINDOW), max(columns, WINDOW)
    x = random_matrix(rng, rows, columns) - np.float32(2)  # so that some windows are below zero everywhere
    x *= np.float32(10 ** rng.uniform(-1, 3))
    x[-WINDOW:, -WINDOW:] -= np.float32(1e36)  # a window far below all numbers that are usual
    if columns > 2 * WINDOW:  # a largest element of 0 is to be stored, too
        x[:WINDOW, :WINDOW] = -abs(x[:WINDOW, :WINDOW])
        x[1, 1] = 0
    blocks = -(-(columns - WINDOW + 1) // OUTPUTS)
    windows = rows - WINDOW + 1
    halo = (blocks - 1) * (WINDOW - 1)  # columns that two blocks load

    def expect_y(x, down=WINDOW, across=WINDOW):
        """Expect the largest element of windows of `down` rows and `across` columns, as many as there should be."""
        parts = np.lib.stride_tricks.sliding_window_view(x.astype(float), (down, across))
        return expect(parts.max((2, 3))[:windows, : columns - WINDOW + 1])

    y = expect_y(x)
    total = np.lib.stride_tricks.sliding_window_view(x.astype(float), (WINDOW, WINDOW))
    return Launch(
        label=f"x {rows} x {columns}, blocks of {WIDTH}",
        args=(x, unwritten_array(y.value.shape)),
        outputs={1: y},
        grid=(blocks,),
        block=(WIDTH,),
        budgets=(
            Budget("global loads", rows * (columns + halo), "each element once per block"),
            Budget("global stores", y.value.size, "each window once"),
            Budget(SHARED_BYTES, 4 * STAGES * WIDTH, "five rows of a block"),
            Budget(EXPOSED_LOADS, -(-100 // windows), "those of the last row of windows"),
            Budget(BARRIERS, rows * blocks, "one per row of x and block"),
            Budget(LOCAL_NUMBERS, WINDOW**2, "a window"),
            NO_FLOAT64,
        ),
        duties=(
            Duty(PLAIN_FLOPS, 0, "a maximum needs no arithmetic", at_most=0),
            shared_among_threads(last_block_size(columns - WINDOW + 1, OUTPUTS), 1, STORING_THREADS),
        ),
        dependences=(
            Dependence(
                COPIES,
                "bring each element by `ptx.cp_async`",
                lambda disturbance: [expect_y(disturbance.disturb(COPIES, x))],
            ),
        ),
        mistakes=(
            Mistake(
                "the last row of each window were left out",
                lambda: {1: expect_y(x, down=WINDOW - 1)},
                "Read 3 rows of the ring for each row of y: those of x[r], x[r + 1] and x[r + 2].",
            ),
            Mistake(
                "the last column of each window were left out",
                lambda: {1: expect_y(x, across=WINDOW - 1)},
                "Read 3 columns of each row in the ring: t, t + 1 and t + 2.",
            ),
            Mistake(
                "0 were in every window",
                lambda: {1: expect(np.maximum(y.value, 0))},
                "Begin the maximum of each window at -np.inf: all elements may be below 0.",
            ),
            Mistake(
                "each window held those above it, too",
                lambda: {1: expect(np.maximum.accumulate(y.value))},
                "Begin the maximum anew for each row of y, inside the loop over the rows.",
            ),
            Mistake(
                "each row from the third on were a copy of the row two above",
                lambda: {1: expect_y(x[[row - 2 * (row > 1) for row in range(rows)]])},
                "In the loop, the copy takes row `row + AHEAD` of x, as it fills that row's stage.",
            ),
            Mistake(
                "blocks began WIDTH columns apart, and wrote two columns less",
                lambda: {1: expect(np.where(np.arange(columns - WINDOW + 1) % WIDTH < OUTPUTS, y.value, np.nan))},
                "A block writes WIDTH - 2 columns: let the first columns of blocks be that far apart.",
            ),
            Mistake(
                "the first row of y were left out",
                lambda: {1: expect(np.where(np.arange(windows)[:, None] > 0, y.value, np.nan))},
                "The first window is complete with row 2 of x: compare `row` with 2 by `>=`.",
            ),
            Mistake(
                "the elements of each window were added",
                lambda: {1: Expected(total.sum((2, 3)), WINDOW**2 * EPS * np.abs(total).sum((2, 3)))},
                "Keep the larger one of the maximum so far and each element, by `max`.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="A window in the ring",
    task="Write y[r, c], the largest of the 3 x 3 elements of x that begin at x[r, c]. Each block brings its columns "
    "of x row by row through a ring, and a row stays in the ring while windows need it.",
    points=4,
    function="highest_around",
    make_launch=make_launch,
    sizes=((12, 100), (9, 300), (3, 3)),  # rows, columns; first one block
    random_sizes=((range(13, 30), range(127, 200)), ((3, 4, 5, 6), Above(300)), (Above(30), (3, 4, 128, 129))),
)
