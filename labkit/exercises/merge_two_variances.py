"""Means and squares of parts, merged into those of all, far from zero."""

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for
from labkit.ladder import Expected

BLOCK, WARP = (64,), 32
SIZES = ((4, 70), (9, 33), (1, 5))  # parts, channels
FAR = 2000, 4000  # spreads from zero, half of the channels
MOST = 200  # values of a part
EMPTY = 0.2  # of the parts


def make_launch(rng, parts, channels):
    count = np.exp(rng.uniform(0, np.log(MOST), (parts, channels))).astype(int)  # many of one value, and of few
    count[(rng.random(count.shape) < EMPTY) & (np.arange(parts)[:, None] != rng.integers(parts, size=channels))] = 0
    spread = 10 ** rng.uniform(-3, 3, channels)
    far = np.where(rng.random(channels) < 0.5, rng.uniform(*FAR, channels), rng.uniform(0, 30, channels))
    centre = far * rng.choice((-1, 1), channels) * spread
    means = (centre + 2 * spread * rng.standard_normal((parts, channels))).astype(np.float32)
    squares = (count * spread**2 * rng.uniform(0.5, 1.5, (parts, channels))).astype(np.float32)
    squares[count == 1] = 0
    for X in means, squares:  # of no values: whatever was there
        X[count == 0] = 10 ** rng.uniform(-3, 4, (count == 0).sum())
    total = count.sum(0)
    mean = (count * means.astype(float)).sum(0) / total
    apart = means.astype(float) - mean
    variance = (count * (squares / np.maximum(count, 1) + apart**2)).sum(0) / total
    off = EPS * (np.abs(mean) * np.sqrt(parts) + 8 * np.sqrt(variance))
    distances = np.sqrt((count * apart**2).sum(0) / total)
    width = np.ptp(np.where(count, apart, 0), axis=0)  # no part is farther from another
    return Launch(
        label=f"{parts} part{'s' * (parts > 1)} of {channels} channels",
        args=(count.astype(np.float32), means, squares, unwritten_array((channels,)), unwritten_array((channels,))),
        outputs={
            3: Expected(mean, 2 * off),
            4: Expected(variance, 16 * parts * EPS * (variance + width**2 / 4) + 4 * off * (distances + off)),
        },
        grid=grid_for((channels,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", 3 * parts * channels, "three numbers of each part, each once"),
            Budget("global stores", 2 * channels, "mean and variance of each channel"),
            Budget(
                "load requests",
                6 * parts * -(-channels // WARP),
                "6 for each part of 32 channels, which a warp loads together",
            ),
            Budget(LOCAL_NUMBERS, 8, "8: there may be any number of parts"),
            Budget(SHARED_BYTES, 0, "none: a thread has a channel"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, channels - (channels - 1) // BLOCK[0] * BLOCK[0], "a thread for each channel"),),
    )


EXERCISE = Exercise(
    id="merge-two-variances",
    title="Merge two variances",
    task="Write the mean and the variance of all values of a channel from the counts, means and squares of its parts, "
    "and load each number once. A part may be empty, and there may be any number of parts. Many means are thousands of "
    "spreads from zero.",
    points=3,
    function="merge",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(
        ((2, 3, 5), range(11, 60, 2)),
        (Beyond(12), (1, 2, 31)),
        ((1, 2, 6), Beyond(80)),
    ),
)
