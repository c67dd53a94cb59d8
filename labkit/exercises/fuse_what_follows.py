"""Scaling, a residual and ReLU in one pass, with channels last."""

from typing import Any

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS
from labkit.exercises.problems import EPS, last_block_size, random_matrix
from labkit.ladder import Expected

BLOCK = 32, 4  # channels and rows
MAX_ROW_BLOCKS = 3  # blocks that share the rows


def make_launch(rng, rows, channels):
    x, z = random_matrix(rng, rows, channels), random_matrix(rng, rows, channels)
    x = x * np.float32(2) + np.float32(1)
    mean, weight, bias = random_matrix(rng, 3, channels)
    variance = (10 ** rng.uniform(-3, 2, channels) * (rng.random(channels) < 0.9)).astype(np.float32)
    eps = np.float32(10 ** rng.uniform(-5, 0))
    variance64 = variance.astype(float)
    root = np.sqrt(variance64 + eps)

    def expect_y(divisor=root, before: Any = 0, after: Any = z, rectify=True):
        """Expect y with `before` added to x, and `after` to what is scaled."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = weight / divisor
            value = (x.astype(float) - mean + before) * scale + bias + after
            size = (np.abs(x) + np.abs(mean) + np.abs(before)) * np.abs(scale) + np.abs(bias) + np.abs(after)
            return {6: Expected(np.maximum(value, 0) if rectify else value, 8 * EPS * size)}

    def add_after_relu():
        (y,) = expect_y(after=0).values()
        return {6: Expected(y.value + z, y.bound + 8 * EPS * np.abs(z))}

    def write_one_row():
        (y,) = expect_y().values()
        return {6: Expected(np.where(np.arange(rows)[:, None] < threads, y.value, np.nan), y.bound)}

    grid = -(-channels // BLOCK[0]), 1 + (rows + channels) % MAX_ROW_BLOCKS
    threads = BLOCK[1] * grid[1]  # of a column
    return Launch(
        label=f"x and z {rows} x {channels}",
        args=(x, z, mean, variance, weight, bias, unwritten_array((rows, channels)), eps),
        outputs=expect_y(),
        grid=grid,
        block=BLOCK,
        budgets=(
            Budget(
                "global loads",
                2 * rows * channels + 4 * channels * threads,
                "each element of x and z once, and the four numbers of a channel once per thread",
            ),
            Budget("load requests", grid[0] * (2 * rows + 4 * threads), "one for 32 neighbours, which a warp loads"),
            Budget(LOCAL_NUMBERS, 0, "what is fused needs no array in between"),
            Budget("global stores", rows * channels, "each element of y once"),
            NO_FLOAT64,
        ),
        # Two threads of each channel, at least, where there are enough rows to share.
        duties=(Duty(ACTIVE_THREADS, 2 * last_block_size(channels, BLOCK[0]), "share the rows among all threads"),)
        * (rows >= 4 * threads),
        mistakes=(
            Mistake("z were added after the ReLU", add_after_relu),
            Mistake("there were no ReLU", lambda: expect_y(rectify=False)),
            Mistake("z were left out", lambda: expect_y(after=0)),
            Mistake("z were scaled, too", lambda: expect_y(before=z, after=0)),
            Mistake("there were no square root", lambda: expect_y(variance64 + eps)),
            Mistake("eps were left out", lambda: expect_y(np.sqrt(variance64))),
            Mistake("eps were added to the root", lambda: expect_y(np.sqrt(variance64) + eps)),
            Mistake("each thread wrote one row", write_one_row),
        ),
    )


EXERCISE = Exercise(
    title="Fuse what follows",
    task="After a batch norm, many networks add a *residual*, an earlier tensor `z`, and then apply ReLU.\n"
    "- **Given**: a kernel that does this in seven passes. Channels come last: x is a matrix with a column per "
    "channel, and each thread goes down the rows of one column.\n"
    "- **Make** it three passes.\n"
    "- **Limits**: each element of x and of z is loaded once, each element of y is stored once; a thread loads the "
    "four numbers of its channel once; no float64.\n"
    "- **Sizes**: any number of rows and channels.",
    points=2,
    function="end_of_block",
    make_launch=make_launch,
    sizes=((37, 40), (9, 64), (3, 5)),  # rows, channels
    random_sizes=((range(11, 40, 2), range(33, 80, 3)), (Above(150), (1, 2, 31)), ((1, 2), Above(64))),
)
