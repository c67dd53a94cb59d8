"""Exercise 12.3: scaling, a residual and ReLU in one pass, with channels last."""

import numpy as np

from labkit.exercises.budget import FLOAT32_ALONE, Budget
from labkit.exercises.exercise import Beyond, Exercise, Launch
from labkit.exercises.problems import matrix, unwritten
from labkit.ladder import Expected

BLOCK = 32, 4  # channels and rows
ROWS = 2  # blocks that share the rows
SIZES = ((37, 40), (9, 64), (3, 5))  # rows, channels
EPS = np.finfo(np.float32).eps


def launch(rng, rows, channels):
    x, z = matrix(rng, rows, channels), matrix(rng, rows, channels)
    x = x * np.float32(2) + np.float32(1)
    mean, weight, bias = matrix(rng, 3, channels)
    variance = rng.uniform(0.1, 4, channels).astype(np.float32)
    eps = np.float32(rng.uniform(0.01, 0.5))
    centred = (x.astype(float) - mean) / np.sqrt(variance.astype(float) + eps) * weight
    grid = -(-channels // BLOCK[0]), ROWS
    threads = grid[0] * BLOCK[0] * BLOCK[1] * ROWS
    size = np.abs(centred) + np.abs(bias) + np.abs(z)
    return Launch(
        label=f"x and z {rows} x {channels}",
        args=(x, z, mean, variance, weight, bias, unwritten((rows, channels)), eps),
        outputs={6: Expected(np.maximum(centred + bias + z, 0), 8 * EPS * (size + np.abs(mean * weight)))},
        grid=grid,
        block=BLOCK,
        budgets=(
            Budget(
                "global loads",
                2 * rows * channels + 4 * threads,
                "each element of x and z once, and the four numbers of a channel once for each thread",
            ),
            Budget("global stores", rows * channels, "each element of y once"),
            FLOAT32_ALONE,
        ),
    )


EXERCISE = Exercise(
    id="12.3",
    title="Fuse what follows",
    task="After many a batch norm a *residual* is added, an earlier tensor `z`, and then comes ReLU. This kernel goes "
    "through memory seven times. Make it three: load each element of x and of z once, and the four numbers of a "
    "channel once for each thread, and store each element of y once.",
    points=2,
    function="end_of_block",
    launch=launch,
    sizes=SIZES,
    drawn=(
        (range(11, 40, 2), range(33, 80, 3)),
        (Beyond(40), (1, 2, 31)),
        ((1, 2), Beyond(64)),
    ),
)
