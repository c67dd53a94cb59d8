"""Softmax maxima and sums of parts, merged into those of the whole row."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for, last_block_size
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK, WARP = (64,), 32
MAX_LOGIT = 1e4
LEAST_LOGIT = -1e37
MAX_SUM = 200.0
EMPTY_SHARE = 0.25  # of the parts


def make_launch(rng, parts, rows):
    centres = rng.uniform(-MAX_LOGIT, MAX_LOGIT, rows)
    maxima = centres + 10 ** rng.uniform(-1, 1.5, rows) * rng.standard_normal((parts, rows))
    spread = rng.random(rows) < 0.3  # rows with maxima of all sizes
    maxima = np.where(spread, rng.uniform(-MAX_LOGIT, MAX_LOGIT, maxima.shape), maxima)
    maxima = np.where(rng.random(rows) < 0.3, np.sort(maxima, 0), maxima).astype(np.float32)
    maxima[:, rows // 2] = LEAST_LOGIT if rows > 5 else maxima[:, rows // 2]
    totals = np.exp(rng.uniform(0, np.log(MAX_SUM), (parts, rows))).astype(np.float32)
    totals[rng.random(totals.shape) < 0.2] = 1  # parts of one logit
    empty = (rng.random((parts, rows)) < EMPTY_SHARE) & (np.arange(parts)[:, None] != rng.integers(parts, size=rows))
    leftover = 10 ** rng.uniform(3, 38, (parts, rows)) * rng.choice((-1, 1), (parts, rows))  # uninitialised numbers
    leftover[rng.random(leftover.shape) < 0.2] = np.nan
    maxima[empty], totals[empty] = np.where(rng.random(empty.sum()) < 0.3, -np.inf, leftover[empty]), 0
    valid_max = np.where(empty, -np.inf, maxima.astype(float))
    maximum = valid_max.max(0)
    rescaled = totals * np.exp(valid_max - maximum)
    distances = np.where(empty, 0, rescaled * (maximum - np.where(empty, maximum, valid_max)))
    bound = EPS * ((4 * parts + 4) * rescaled.sum(0) + 2 * distances.sum(0))

    def mistake(cause, cure, merge_sums):
        return Mistake(cause, lambda: {3: _merge_in_order(valid_max, totals, merge_sums)}, cure)

    return Launch(
        label=f"{count_text(parts, 'part')} of {count_text(rows, 'row')}, one thread per row",
        args=(maxima, totals, unwritten_array((rows,)), unwritten_array((rows,))),
        outputs={2: Expected(maximum, np.zeros(rows)), 3: Expected(rescaled.sum(0), bound)},
        grid=grid_for((rows,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", 2 * parts * rows, "two numbers of each part, each once"),
            Budget("global stores", 2 * rows, "maximum and sum of each row"),
            Budget("load requests", 2 * parts * -(-rows // WARP), "2 per part of 32 rows"),
            Budget(LOCAL_NUMBERS, 8, "8: there may be any number of parts"),
            Budget(SHARED_BYTES, 0, "each thread has one row"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(rows, BLOCK[0]), "one thread per row"),),
        mistakes=(
            mistake(
                "the sum of the parts before were not rescaled",
                "Multiply the sum so far by `exp` of its maximum minus the new one.",
                lambda s, t, alpha, beta: s + t * beta,
            ),
            mistake(
                "the sum of each new part were not rescaled",
                "Multiply the sum of the part by `exp` of its own maximum minus the new one.",
                lambda s, t, alpha, beta: s * alpha + t,
            ),
            mistake(
                "only the larger sum were kept",
                "Add both sums, each rescaled to the larger maximum.",
                lambda s, t, alpha, beta: np.maximum(s, t),
            ),
        ),
    )


def _merge_in_order(maxima, totals, merge_sums):
    """Merge parts one after the other; `merge_sums` makes one of two sums, for which it gets two factors."""
    row_max, row_sum = np.full(maxima.shape[1], -np.inf), np.zeros(maxima.shape[1])
    for its_max, its_sum in zip(maxima, totals.astype(float), strict=True):
        larger = np.maximum(row_max, its_max)
        base = np.where(larger > -np.inf, larger, 0)
        merged = merge_sums(row_sum, its_sum, np.exp(row_max - base), np.exp(its_max - base))
        is_first = row_max == -np.inf
        row_sum = np.where(its_max == -np.inf, row_sum, np.where(is_first, its_sum, merged))
        row_max = larger
    spread = row_max - np.where(maxima > -np.inf, maxima, row_max).min(0)
    return Expected(row_sum, EPS * (8 * len(maxima) + 8 + 4 * spread) * row_sum)


EXERCISE = Exercise(
    title="Merge the parts",
    task="Write the maximum of each row, and the sum of its exponentials relative to it, from those of its parts; load "
    "each number once. A part may be empty: then its sum is 0, and the number stored as its maximum means nothing.",
    points=3,
    function="merge",
    make_launch=make_launch,
    sizes=((4, 70), (9, 33), (1, 5)),  # parts, rows
    random_sizes=(
        (range(1_001, 1_500, 2), (13, 14)),  # too many for the variables of a thread
        ((2, 3, 5), range(11, 60, 2)),
        (Above(12), (1, 2, 31)),
        ((1, 2, 6), Above(80)),
    ),
)
