"""Attention outputs of the parts of a split key cache, merged into the output for all keys."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, last_block_size
from labkit.ladder import Expected
from labkit.table import count_text

HEAD_DIM, ROWS = 32, 4  # of an output, and per block
MAX_LSE = 700.0
EMPTY_SHARE = 0.3  # of the parts


def make_launch(rng, parts, rows):
    max_lse = MAX_LSE * np.where(rng.random(rows) < 0.2, 10, 1)
    lse = rng.uniform(-max_lse, max_lse) + 10 ** rng.uniform(-1, 2, rows) * rng.standard_normal((parts, rows))
    spread = rng.random(rows) < 0.3  # rows with log-sum-exps of all sizes
    lse = np.where(spread, rng.uniform(-max_lse, max_lse, lse.shape), lse)
    lse = np.where(rng.random(rows) < 0.3, np.sort(lse, 0), lse)
    lse[0, rng.random(rows) < 0.3] += 300  # whose exponential overflows
    lse = lse.astype(np.float32)
    O = rng.standard_normal((parts, rows, HEAD_DIM), np.float32)
    empty = draw_empty_parts(rng, parts, rows)
    lse[empty] = -np.inf
    leftovers = np.array((np.nan, np.inf, -np.inf, 3e38, -1.0, 0.0), np.float32)  # uninitialised numbers
    O[empty] = rng.choice(leftovers, (empty.sum(), HEAD_DIM))

    valid_lse = np.where(empty, -np.inf, lse.astype(float))
    row_max = np.where(empty.all(0), 0, valid_lse.max(0))
    weights = np.exp(valid_lse - row_max)
    row_sum = weights.sum(0)
    weights /= np.where(row_sum > 0, row_sum, 1)
    values = np.where(empty[:, :, None], 0, O.astype(float))
    with np.errstate(divide="ignore"):
        merged_lse = row_max + np.log(row_sum)
    lse_size = np.abs(np.where(empty, 0, lse)).max(0)
    error = EPS * (parts * (4 + 2 * lse_size) + 4)  # weights may be relative to a running log-sum-exp
    is_found = ~empty.all(0)

    def expect_O(factor):
        """Expect O with another divisor."""
        O = (weights[:, :, None] * values).sum(0) * factor[:, None]
        size = (weights[:, :, None] * np.abs(values)).sum(0) * factor[:, None]
        return {2: Expected(O, error[:, None] * size)}

    def expect_lse(value, of_nothing=-np.inf):
        with np.errstate(invalid="ignore"):
            return {3: Expected(np.where(is_found, value, of_nothing), error * np.maximum(1, row_sum))}

    def skip_empty():
        (O,) = expect_O(np.ones(rows)).values()
        return {2: Expected(np.where(is_found[:, None], O.value, np.nan), O.bound)}

    return Launch(
        label=f"{count_text(parts, 'part')} of {count_text(rows, 'row')}",
        args=(O, lse, unwritten_array((rows, HEAD_DIM)), unwritten_array((rows,))),
        outputs={
            2: Expected(
                (weights[:, :, None] * values).sum(0), error[:, None] * (weights[:, :, None] * np.abs(values)).sum(0)
            ),
            3: Expected(merged_lse, error),
        },
        grid=(1, -(-rows // ROWS)),
        block=(HEAD_DIM, ROWS),
        budgets=(
            Budget(
                "global loads",
                2 * parts * rows * HEAD_DIM,
                "one element of O and one log-sum-exp per part and thread",
            ),
            Budget("load requests", 2 * parts * rows, "2 per warp and part of its row"),
            Budget(
                "global stores",
                rows * (HEAD_DIM + 1),
                "32 numbers and one log-sum-exp per row",
                {"O": rows * HEAD_DIM, "lse": rows},
            ),
            Budget(LOCAL_NUMBERS, 0, "there may be any number of parts"),
            Budget(SHARED_BYTES, 0, "there may be any number of parts"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, HEAD_DIM * last_block_size(rows, ROWS), "one thread per number of a row"),),
        mistakes=(
            Mistake("O were not divided by the sum of the weights", lambda: expect_O(row_sum)),
            Mistake("O were divided by the number of parts", lambda: expect_O(row_sum / parts)),
            Mistake("O were not stored where all parts are empty", skip_empty),
            Mistake("the maximum were the log-sum-exp", lambda: expect_lse(row_max)),
            Mistake("the sum were the log-sum-exp", lambda: expect_lse(row_sum)),
            Mistake("the maximum were left out of the log-sum-exp", lambda: expect_lse(merged_lse - row_max)),
            Mistake("the log-sum-exp of nothing were 0", lambda: expect_lse(merged_lse, 0)),
        ),
    )


def draw_empty_parts(rng, parts, rows):
    """Mark empty parts: all of one row, a fixed number of the others; of a single row each by chance."""
    if rows == 1:
        return rng.random((parts, 1)) < EMPTY_SHARE
    others = parts * (rows - 1)
    empty = rng.permuted(np.arange(others) < EMPTY_SHARE * others).reshape(parts, rows - 1)
    return np.insert(empty, rng.integers(rows), True, axis=1)


EXERCISE = Exercise(
    title="The merge of a split",
    task="The keys of a long cache were split into parts. For each row, a query, each part has stored its own O, which "
    "is divided by its own sum of exponentials, and its own log-sum-exp. Write O and the log-sum-exp of all keys, in "
    "one pass: no thread loads a number twice. A part may hold no key that the query sees: then its log-sum-exp is "
    "-inf, and the content of its O means nothing. A row whose parts are all empty has O = 0 and a log-sum-exp of "
    "-inf.",
    points=3,
    function="merge_split",
    make_launch=make_launch,
    sizes=((5, 11), (9, 6), (1, 3)),  # parts, rows
    random_sizes=(
        (range(1_001, 1_500, 2), (13, 14)),  # too many for the variables of a thread
        ((2, 3, 7), range(5, 14, 2)),
        (Above(12), (1, 2, 9)),
        ((1, 2, 6), Above(14)),
    ),
)
