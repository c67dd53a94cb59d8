"""The length of vectors whose squares overflow or underflow, in one pass."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, random_matrix
from labkit.ladder import Expected

WARP = 32
SCALES = -28, 34  # powers of ten
TINY = 2e-37
EXPONENTS = -36, 36  # of rows that span the whole range of float32
LEAST = 1e-37
GREAT = 2.5e38  # a length near the largest number of float32


def make_launch(rng, rows, columns):
    X = random_matrix(rng, rows, columns) * 10 ** rng.uniform(*SCALES, (rows, 1))
    spread = rng.random((rows, 1)) < 0.4  # values of all magnitudes
    X = np.where(spread, X * 10 ** rng.uniform(-6, 0, X.shape), X)
    order = np.argsort(np.abs(X), 1)
    X = np.where(rng.random((rows, 1)) < 0.3, np.take_along_axis(X, order, 1), X)  # each larger than the last
    normal = random_matrix(rng, rows, columns)
    X = np.where(rng.random((rows, 1)) < 0.3, normal * 10 ** rng.uniform(*EXPONENTS, X.shape), X)
    X[rng.random(X.shape) < 0.1] = 0
    X[rng.random(rows) < 0.2] = 0
    if rows > 5:
        X[rows // 2] = normal[rows // 2] / np.linalg.norm(normal[rows // 2]) * np.float64(GREAT)
        X[0] = TINY * normal[0]
    X = np.where(np.abs(X) < LEAST, 0, X).astype(np.float32)
    length = np.sqrt((X.astype(float) ** 2).sum(1))

    def expect_length(length):
        with np.errstate(over="ignore"):
            length = length.astype(np.float32).astype(float)  # infinite if it is too large for float32
        return {1: Expected(length, (columns / 4 + 32) * EPS * length)}  # 32: scaling, and the sum over lanes

    largest = np.abs(X).max(1).astype(float)
    relative = length / np.where(largest, largest, 1)
    lanes = np.pad(X.astype(float), ((0, 0), (0, -columns % WARP))).reshape(rows, -1, WARP)
    scales = np.abs(lanes).max(1)
    of_lanes = np.sqrt(((lanes / np.where(scales, scales, 1)[:, None]) ** 2).sum((1, 2)))
    return Launch(
        label=f"X {rows} x {columns}, one warp per row",
        args=(X, unwritten_array((rows,))),
        outputs=expect_length(length),
        grid=(rows,),
        block=(WARP,),
        budgets=(
            Budget("global loads", rows * columns, "each element once"),
            Budget("global stores", rows, "one number per row"),
            Budget("load requests", rows * -(-columns // WARP), "one for 32 columns of a row"),
            Budget(LOCAL_NUMBERS, 8, "8: a row may have any length"),
            Budget(SHARED_BYTES, 1024, "1 KB: a row may have any length"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, min(columns, WARP) // 2, "one warp per row"),),  # a lane may take 2 columns
        mistakes=(
            Mistake(
                "there were no root",
                lambda: expect_length(relative * length),
                "Take the root of the sum before you multiply by the largest value.",
            ),
            Mistake(
                "the length were relative to the largest value",
                lambda: expect_length(relative),
                "Multiply the root by the largest value of the row.",
            ),
            Mistake(
                "values below zero were left out",
                lambda: expect_length(np.sqrt((X.clip(0).astype(float) ** 2).sum(1))),
                "Compare sizes: take `abs` of each element.",
            ),
            Mistake(
                "each lane's sum stayed relative to its own scale",
                lambda: expect_length(largest * of_lanes),
                "Before lanes add their sums, multiply each by the square of its scale over the largest one.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="A length without overflow",
    task="The length of a vector is the root of the sum of its squares. In float32 the square of 1e20 is infinite, and "
    "that of 1e-25 is 0, though both are lengths that float32 holds. Write the length of each row, and load each "
    "element once. A row may be all 0, and have any length.",
    points=4,
    function="length",
    make_launch=make_launch,
    sizes=((6, 96), (13, 77), (1, 33)),  # rows, columns
    random_sizes=(
        ((1,), range(20_001, 30_000, 2)),  # too long for the variables of a thread
        (range(5, 20, 2), range(101, 200, 2)),
        ((1, 2), Above(200)),
        (Above(20), (1, 2, 31, 64)),
    ),
)
