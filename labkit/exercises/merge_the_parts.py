"""Maxima and sums of parts, merged into those of all."""

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for
from labkit.ladder import Expected

BLOCK, WARP = (64,), 32
SIZES = ((4, 70), (9, 33), (1, 5))  # parts, rows
FAR = 1e4  # logits from zero
MOST = 200.0  # of a sum
EMPTY = 0.25  # of the parts


def make_launch(rng, parts, rows):
    maxima = rng.uniform(-FAR, FAR, rows) + 10 ** rng.uniform(-1, 1.5, rows) * rng.standard_normal((parts, rows))
    maxima = np.where(rng.random(rows) < 0.3, np.sort(maxima, 0), maxima).astype(np.float32)
    totals = np.exp(rng.uniform(0, np.log(MOST), (parts, rows))).astype(np.float32)
    empty = (rng.random((parts, rows)) < EMPTY) & (np.arange(parts)[:, None] != rng.integers(parts, size=rows))
    left = 10 ** rng.uniform(3, 38, (parts, rows)) * rng.choice((-1, 1), (parts, rows))  # whatever was there
    maxima[empty], totals[empty] = np.where(rng.random(empty.sum()) < 0.3, -np.inf, left[empty]), 0
    there = np.where(empty, -np.inf, maxima.astype(float))
    maximum = there.max(0)
    moved = totals * np.exp(there - maximum)
    apart = np.where(empty, 0, moved * (maximum - np.where(empty, maximum, there)))
    off = EPS * ((4 * parts + 4) * moved.sum(0) + 2 * apart.sum(0))
    return Launch(
        label=f"{parts} part{'s' * (parts > 1)} of {rows} rows, a thread a row",
        args=(maxima, totals, unwritten_array((rows,)), unwritten_array((rows,))),
        outputs={2: Expected(maximum, np.zeros(rows)), 3: Expected(moved.sum(0), off)},
        grid=grid_for((rows,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", 2 * parts * rows, "two numbers of each part, each once"),
            Budget("global stores", 2 * rows, "maximum and sum of each row"),
            Budget("load requests", 2 * parts * -(-rows // WARP), "2 for each part of 32 rows"),
            Budget(LOCAL_NUMBERS, 8, "8: there may be any number of parts"),
            Budget(SHARED_BYTES, 0, "none: a thread has a row"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, rows - (rows - 1) // BLOCK[0] * BLOCK[0], "a thread for each row"),),
    )


EXERCISE = Exercise(
    id="merge-the-parts",
    title="Merge the parts",
    task="Write the maximum of each row, and the sum of its exponentials relative to it, from those of its parts; load "
    "each number once. A part may be empty: then its sum is 0, and whatever stands for its maximum means nothing.",
    points=3,
    function="merge",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(((2, 3, 5), range(11, 60, 2)), (Beyond(12), (1, 2, 31)), ((1, 2, 6), Beyond(80))),
)
