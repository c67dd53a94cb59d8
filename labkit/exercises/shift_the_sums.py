"""A covariance in one pass, of rows tens of thousands of standard deviations from zero."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, random_matrix
from labkit.ladder import Expected

WARP = 32
AT_THE_END = "The last line was right as it was given: subtract sum_x sum_y / count, then divide by `count`."
OFFSETS = 20_000, 40_000  # from zero, in standard deviations


def make_launch(rng, M, N):
    X, Y = _move_rows(rng, random_matrix(rng, M, N)), _move_rows(rng, random_matrix(rng, M, N))
    x, y = (row - row.mean(1, keepdims=True) for row in (X.astype(float), Y.astype(float)))
    width = np.ptp(x, axis=1) * np.ptp(y, axis=1)  # no product of distances from a value of the row is larger
    value, bound = (x * y).mean(1), (N // WARP + 16) * EPS * width
    of_means = x[:, 0] * y[:, 0]  # the means of rows that are shifted by their first elements
    undivided, fewer = value + (1 - N) * of_means, N / max(N - 1, 1)
    return Launch(
        label=f"X and Y {M} x {N}, one warp per row",
        args=(X, Y, unwritten_array((M,))),
        outputs={2: Expected(value, bound)},
        grid=(M,),
        block=(WARP,),
        budgets=(
            Budget("global loads", 2 * M * (N + WARP), "each element once, and one shift of X and one of Y per lane"),
            Budget("global stores", M, "one number per row"),
            Budget("load requests", 2 * M * (-(-N // WARP) + 2), "2 for 32 columns of a row, and 4 for its shifts"),
            Budget(LOCAL_NUMBERS, 8, "8: a row may have any length"),
            Budget(SHARED_BYTES, 1024, "1 KB: a row may have any length"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, min(N, WARP) // 2, "one warp per row"),),  # a lane may take 2 elements
        mistakes=(
            Mistake(
                "the product of the means were not subtracted",
                lambda: {2: Expected(value + of_means, 2 * bound)},
                AT_THE_END,
            ),
            Mistake(
                "the product of the sums were not divided by the count",
                lambda: {2: Expected(undivided, N * bound)},
                AT_THE_END,
            ),
            Mistake(
                "the sum of products were not divided by the count",
                lambda: {2: Expected(N * value, N * bound)},
                AT_THE_END,
            ),
            *(Mistake("the count were one less", lambda: {2: Expected(fewer * value, 2 * bound)}, AT_THE_END),)
            * (N > 1),
        ),
    )


def _move_rows(rng, rows):
    """Give each row a standard deviation and an offset of its own, some below zero."""
    std = 10 ** rng.uniform(-3, 3, (len(rows), 1))
    offsets = rng.uniform(*OFFSETS, std.shape) * rng.choice((-1, 1), std.shape)
    return (std * (rows + offsets)).astype(np.float32)


EXERCISE = Exercise(
    title="Shift the sums",
    task="The **covariance** of two rows is the mean of all (x - mean of X) times (y - mean of Y).\n"
    "- **Given**: a kernel that computes mean(x y) - mean(x) mean(y) in one pass, and loses all digits: the rows are "
    "tens of thousands of spreads from zero.\n"
    "- **Fix** it, still in one pass.\n"
    "- **Limits**: one warp per row; each element is loaded once, and besides these one element of each row by each "
    "lane; no float64.\n"
    "- **Sizes**: any number of rows of any length.",
    points=3,
    function="covariance",
    make_launch=make_launch,
    sizes=((5, 96), (12, 77), (1, 33)),  # rows, columns
    random_sizes=(
        ((1,), range(20_001, 30_000, 2)),  # too long for the variables of a thread
        (range(7, 20, 2), range(101, 200, 2)),
        ((1,), Above(200)),
        (Above(20), (2, 31, 32)),
    ),
)
