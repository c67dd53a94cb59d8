"""RMSNorm that reads each row once."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.checking.placed_cure import PlacedCure, calls_of
from labkit.exercises.problems import EPS, random_matrix
from labkit.ladder import Expected

THREADS, WARP = 128, 32
THE_ROOT = calls_of("sqrt", "rsqrt")
BY_COLUMNS = "Divide the sum of squares by the number of columns."


def make_launch(rng, rows, columns):
    eps = np.float32(10 ** rng.uniform(-5, 0))
    spread = np.where(rng.random((rows, 1)) < 0.5, np.sqrt(eps), 10 ** rng.uniform(-3, 3, (rows, 1)))
    x = ((random_matrix(rng, rows, columns) + rng.uniform(-1, 1, (rows, 1))) * spread).astype(np.float32)
    x[rng.random(rows) < 0.2] = 0  # rows whose mean square is eps alone
    (weight,) = random_matrix(rng, 1, columns)
    squares = x.astype(float) ** 2
    total = squares.sum(1, keepdims=True)
    of_warp_0 = squares[:, np.arange(columns) % THREADS < WARP].sum(1, keepdims=True)

    def expect_y(divisor, weight=weight):
        with np.errstate(invalid="ignore"):  # a row of zeros without eps
            y = x / divisor * weight
        return {2: Expected(y, (columns + 16) * EPS * np.abs(y))}

    def mistake(cause, cure, divide_by):
        return Mistake(cause, lambda: expect_y(divide_by()), cure)

    shared_bytes = 4 * (columns + WARP)
    warps = rows * THREADS // WARP
    return Launch(
        label=f"x {rows} x {columns}, one block of {THREADS} threads per row",
        args=(x, weight, unwritten_array((rows, columns)), eps),
        outputs=expect_y(np.sqrt(total / columns + eps)),
        grid=(rows,),
        block=(THREADS,),
        shared_bytes=shared_bytes,
        budgets=(
            Budget(
                "global loads",
                2 * rows * columns,
                "each element of x once, and the weights once per row",
                shares={"x": rows * columns, "weight": rows * columns},
            ),
            Budget("global stores", rows * columns, "each element of y once"),
            Budget("load requests", 2 * warps * -(-columns // THREADS), "2 of each warp for 128 columns of its row"),
            Budget(SHARED_BYTES, shared_bytes + 1024, "what the launch gives, and 1 KB: a row may have any length"),
            Budget(LOCAL_NUMBERS, 8, "8: a row may have any length"),
            NO_FLOAT64,
        ),
        # A thread may take 2 columns.
        duties=(Duty(ACTIVE_THREADS, min(columns, THREADS) // 2, "share the row among all threads of its block"),),
        mistakes=(
            mistake("the sum were taken, not the mean", BY_COLUMNS, lambda: np.sqrt(total + eps)),
            mistake("the sum were divided by the threads", BY_COLUMNS, lambda: np.sqrt(total / THREADS + eps)),
            mistake(
                "eps were left out",
                PlacedCure("Add `eps` to the mean, under the root.", THE_ROOT),
                lambda: np.sqrt(total / columns),
            ),
            mistake(
                "eps were added to the root",
                PlacedCure(
                    "Add `eps` to the mean before you take the root: it belongs inside of the brackets.", THE_ROOT
                ),
                lambda: np.sqrt(total / columns) + eps,
            ),
            mistake(
                "eps were divided by the columns, too",
                PlacedCure("Divide the sum of squares alone by the columns, and add `eps` to that.", THE_ROOT),
                lambda: np.sqrt((total + eps) / columns),
            ),
            mistake(
                "there were no square root",
                "Divide by the root of the mean plus `eps`: `sqrt` around both.",
                lambda: total / columns + eps,
            ),
            mistake(
                "y were multiplied by the root, not divided",
                "Divide by the root where y is stored, or multiply by 1 over it.",
                lambda: 1 / np.sqrt(total / columns + eps),
            ),
            Mistake(
                "the weights were left out",
                lambda: expect_y(np.sqrt(total / columns + eps), 1),
                "Multiply by the weight of its column where y is stored.",
            ),
            mistake(
                "only the sum of warp 0 were taken",
                "Each warp has a sum of its own: store all of them, wait at a barrier, and add them up.",
                lambda: np.sqrt(of_warp_0 / columns + eps),
            ),
        ),
    )


EXERCISE = Exercise(
    title="RMSNorm",
    task="- **Given**: x, a weight per column, and eps. Language models normalise rows, and often without the mean.\n"
    "- **Write** y = x / sqrt(mean of the row's x * x, plus eps) * weight (Zhang and Sennrich, 2019).\n"
    "- **Limits**: a block of 128 threads per row; each element of x is loaded once; no float64. Dynamic shared "
    "memory has room for the row and 32 numbers more.\n"
    "- **Sizes**: any number of rows of any length.",
    points=4,
    function="rms_norm",
    make_launch=make_launch,
    sizes=((3, 300), (7, 50), (2, 129)),  # rows, columns
    random_sizes=(
        ((1,), range(9_001, 11_000, 2)),  # too long for the variables of a thread
        ((2, 5), range(131, 260, 2)),
        ((1, 3), Above(300)),
        ((1, 3), (128, 256, 512)),
        (Above(8), (1, 2, 31, 64)),
    ),
)
