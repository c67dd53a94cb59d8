"""Means and squared deviations of parts far from zero, merged into those of all values."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for, last_block_size
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK, WARP = (64,), 32
BETWEEN = "Add for each merge the squared distance of both means times a b / (a + b), for a and b values."
OFFSETS = 2000, 4000  # of half the channels from zero, in standard deviations
MAX_COUNT = 200  # values per part
EMPTY_SHARE = 0.2  # of the parts


def make_launch(rng, parts, channels):
    count = np.exp(rng.uniform(0, np.log(MAX_COUNT), (parts, channels))).astype(int)  # many have one value or few
    may_be_empty = rng.random(count.shape) < EMPTY_SHARE
    count[may_be_empty & (np.arange(parts)[:, None] != rng.integers(parts, size=channels))] = 0
    std = 10 ** rng.uniform(-3, 3, channels)
    offset = np.where(rng.random(channels) < 0.5, rng.uniform(*OFFSETS, channels), rng.uniform(0, 30, channels))
    centre = offset * rng.choice((-1, 1), channels) * std
    means = (centre + 2 * std * rng.standard_normal((parts, channels))).astype(np.float32)
    squares = (count * std**2 * rng.uniform(0.5, 1.5, (parts, channels))).astype(np.float32)
    squares[count == 1] = 0
    total = count.sum(0)
    mean = (count * means.astype(float)).sum(0) / total
    deviations = means.astype(float) - mean
    variance = (count * (squares / np.maximum(count, 1) + deviations**2)).sum(0) / total
    mean_error = EPS * (np.abs(mean) * np.sqrt(parts) + 8 * np.sqrt(variance))
    distances = np.sqrt((count * deviations**2).sum(0) / total)
    width = np.ptp(np.where(count, deviations, 0), axis=0)  # no part is farther from another
    bound = 16 * parts * EPS * (variance + width**2 / 4) + 4 * mean_error * (distances + mean_error)
    inside = squares.sum(0, float) / total
    return Launch(
        label=f"{count_text(parts, 'part')} of {count_text(channels, 'channel')}",
        args=(
            count.astype(np.float32),
            *(add_leftovers(rng, X, count == 0) for X in (means, squares)),
            unwritten_array((channels,)),
            unwritten_array((channels,)),
        ),
        outputs={
            3: Expected(mean, 2 * mean_error),
            4: Expected(variance, bound),
        },
        grid=grid_for((channels,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", 3 * parts * channels, "three numbers of each part, each once"),
            Budget("global stores", 2 * channels, "mean and variance of each channel"),
            Budget(
                "load requests",
                6 * parts * -(-channels // WARP),
                "6 per part of 32 channels, which a warp loads together",
            ),
            Budget(LOCAL_NUMBERS, 8, "8: there may be any number of parts"),
            Budget(SHARED_BYTES, 0, "each thread has one channel"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(channels, BLOCK[0]), "one thread per channel"),),
        mistakes=(
            Mistake("all parts had the same mean", lambda: {4: Expected(inside, (parts + 2) * EPS * inside)}, BETWEEN),
            Mistake(
                "the values of each part were all the same",
                lambda: {4: Expected(distances**2, bound)},
                "Add each part's `squares`, too.",
            ),
            Mistake(
                "the variance were not divided by the count",
                lambda: {4: Expected(total * variance, total * bound)},
                "Divide by the number of all values where variance is stored.",
            ),
        ),
    )


def add_leftovers(rng, X, empty):
    """Give the empty parts uninitialised numbers."""
    finite = 10 ** rng.uniform(-3, 4, X.shape)
    leftovers = np.where(rng.random(X.shape) < 0.5, finite, rng.choice((np.nan, np.inf, -np.inf), X.shape))
    return np.where(empty, leftovers, X).astype(np.float32)


EXERCISE = Exercise(
    title="Merge two variances",
    task="- **Given**: part `p` of channel `c` has `count[p, c]` values with the mean `means[p, c]`; `squares[p, c]` "
    "is the sum of their squared distances from that mean. The kernel is right if all parts have one mean, and equally "
    "many values.\n"
    "- **Write** the mean and the variance of all values of each channel.\n"
    "- **Limits**: one thread per channel; each number is loaded once; no float64.\n"
    "- **Sizes**: any number of parts. Some are empty, and the numbers stored for them mean nothing: NaN, too. Many "
    "means are thousands of spreads from zero, but those of a channel are only a few spreads apart.",
    points=3,
    function="merge",
    make_launch=make_launch,
    sizes=((4, 70), (9, 33), (1, 5)),  # parts, channels
    random_sizes=(
        (range(1_001, 1_500, 2), (1, 2)),  # too many for the variables of a thread
        ((2, 3, 5), range(11, 60, 2)),
        (Above(12), (1, 2, 31)),
        ((1, 2, 6), Above(80)),
    ),
)
