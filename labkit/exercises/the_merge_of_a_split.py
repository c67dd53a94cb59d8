"""A cache whose parts were attended to one by one, and the attention to all of it."""

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS
from labkit.ladder import Expected

HEAD, ROWS = 32, 4  # numbers of a row, rows of a block
SIZES = ((5, 11), (9, 6), (1, 3))  # parts, rows
FAR = 700.0  # log-sum-exp from zero
EMPTY = 0.3  # of the parts


def make_launch(rng, parts, rows):
    far = FAR * np.where(rng.random(rows) < 0.2, 10, 1)
    lse = rng.uniform(-far, far) + 10 ** rng.uniform(-1, 2, rows) * rng.standard_normal((parts, rows))
    lse = np.where(rng.random(rows) < 0.3, np.sort(lse, 0), lse)
    lse[0, rng.random(rows) < 0.3] += 300  # whose exponential overflows
    lse = lse.astype(np.float32)
    O = rng.standard_normal((parts, rows, HEAD), np.float32)
    empty = drawn_empty(rng, parts, rows)
    lse[empty] = -np.inf
    left = np.array((np.inf, -np.inf, 3e38, -1.0, 0.0), np.float32)  # whatever was there
    O[empty] = rng.choice(left, (empty.sum(), HEAD))

    there = np.where(empty, -np.inf, lse.astype(float))
    most = np.where(empty.all(0), 0, there.max(0))
    weights = np.exp(there - most)
    total = weights.sum(0)
    weights /= np.where(total > 0, total, 1)
    values = np.where(empty[:, :, None], 0, O.astype(float))
    with np.errstate(divide="ignore"):
        merged = most + np.log(total)
    farthest = np.abs(np.where(empty, 0, lse)).max(0)
    off = EPS * (parts * (4 + 2 * farthest) + 4)  # of weights relative to a running log-sum-exp
    return Launch(
        label=f"{parts} part{'s' * (parts > 1)} of {rows} rows",
        args=(O, lse, unwritten_array((rows, HEAD)), unwritten_array((rows,))),
        outputs={
            2: Expected(
                (weights[:, :, None] * values).sum(0), off[:, None] * (weights[:, :, None] * np.abs(values)).sum(0)
            ),
            3: Expected(merged, off),
        },
        grid=(1, -(-rows // ROWS)),
        block=(HEAD, ROWS),
        budgets=(
            Budget(
                "global loads",
                2 * parts * rows * HEAD,
                "an element of O and a log-sum-exp of each part for each thread",
            ),
            Budget("load requests", 2 * parts * rows, "2 of a warp for each part of its row"),
            Budget(
                "global stores",
                rows * (HEAD + 1),
                "32 numbers and a log-sum-exp for each row",
                {"O": rows * HEAD, "lse": rows},
            ),
            Budget(LOCAL_NUMBERS, 0, "none: there may be any number of parts"),
            Budget(SHARED_BYTES, 0, "none: there may be any number of parts"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, HEAD * ((rows - 1) % ROWS + 1), "a thread for each number of a row"),),
    )


def drawn_empty(rng, parts, rows):
    """Which parts are empty: as many whatever the seed, all of one row, and of a single row those that chance says."""
    if rows == 1:
        return rng.random((parts, 1)) < EMPTY
    others = parts * (rows - 1)
    empty = rng.permuted(np.arange(others) < EMPTY * others).reshape(parts, rows - 1)
    return np.insert(empty, rng.integers(rows), True, axis=1)


EXERCISE = Exercise(
    id="the-merge-of-a-split",
    title="The merge of a split",
    task="The keys of a long cache were split into parts. For each row, a query, each part has left its own O, which "
    "is divided by the sum of its own weights, and its own log-sum-exp. Write O and the log-sum-exp of all keys, in "
    "one pass: no thread loads a number twice. A part may hold no key that the query sees: then its log-sum-exp is "
    "-inf, and whatever stands in its O means nothing. A row whose parts are all empty has O = 0 and a log-sum-exp of "
    "-inf.",
    points=3,
    function="merge_split",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(((2, 3, 7), range(5, 14, 2)), (Beyond(12), (1, 2, 9)), ((1, 2, 6), Beyond(14))),
)
