"""A tile of the lowered matrix that copies fill, including the zeros of its padding."""

import numpy as np

from labkit.checking import (
    NO_ARITHMETIC,
    NO_FLOAT64,
    Above,
    Budget,
    Dependence,
    Duty,
    Exercise,
    Launch,
    Mistake,
    unwritten_array,
)
from labkit.checking.budget import FILLING_THREADS
from labkit.exercises.problems import grid_for, last_block_size
from labkit.ladder import Expected
from labkit.simulator.disturbance import COPIES

TILE_COLUMNS, TILE_ROWS = 64, 8  # of a tile; one column per thread


def make_launch(rng, H, W, R, S, top, left):
    H, W = max(H, R), max(W, S)  # so that there are outputs
    P, Q = H + 2 * top - R + 1, W + 2 * left - S + 1
    x = rng.standard_normal((H, W), np.float32)

    def expect_lowered(disturb):
        """Expect the lowered matrix where every copy is disturbed; the zeros are copies, too."""
        padded = disturb(np.pad(x, ((top, top), (left, left))))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (R, S))
        return Expected(windows.transpose(2, 3, 0, 1).reshape(R * S, P * Q).astype(float), np.zeros((R * S, P * Q)))

    def copy(
        cause, row=lambda p, r: p + r - top, col=lambda q, s: q + s - left, width=W, taps=None, is_guarded=True, cure=""
    ):
        """Make the mistake of copying from this row and column; None if it would copy from outside of x."""
        (p, q), (r, s) = np.divmod(np.arange(P * Q), Q), taps or np.divmod(np.arange(R * S)[:, None], S)
        row, col = row(p, r), col(q, s)
        is_there = (row < H) & (col < W) & ((row >= 0) & (col >= 0) | (not is_guarded))
        place = np.where(is_there, row * width + col, 0)
        if place.min() < -H * W or place.max() >= H * W:
            return None
        value = np.where(is_there, x.ravel()[place], 0).astype(float)
        return Mistake(cause, lambda: {1: Expected(value, np.zeros_like(value))}, cure)

    mistakes = (
        copy(
            "only the lower and the right end of the image were looked at",
            is_guarded=False,
            cure="A row or column below 0 is outside, too: test for it, or compare both as `np.uint32`.",
        ),
        copy("rows of x were H elements apart", width=H, cure="A row of x has W elements: write `row * W + col`."),
        copy(
            "there were no padding above and on the left",
            lambda p, r: p + r,
            lambda q, s: q + s,
            cure="Subtract `top` from the row of the image, and `left` from its column.",
        ),
        copy(
            "top and left were exchanged",
            lambda p, r: p + r - left,
            lambda q, s: q + s - top,
            cure="`top` belongs to the row, with p and r, and `left` to the column.",
        ),
        copy(
            "taps were counted down the windows first",
            taps=np.divmod(np.arange(R * S)[:, None], R)[::-1],
            cure="A row of a window has S taps: r is the quotient of the tap by S, and s the remainder.",
        ),
    )
    grid = grid_for((P * Q, R * S), (TILE_COLUMNS, TILE_ROWS))
    size, copies = P * Q * R * S, int(np.prod(grid)) * TILE_ROWS * TILE_COLUMNS // 32
    why = "load each element with a copy, and outside of the image with a copy that reads no bytes"
    return Launch(
        label=f"an image of {H} x {W}, windows of {R} x {S}, zeros on each side: "
        f"{top} above and below, {left} left and right",
        args=(x.ravel(), unwritten_array((R * S, P * Q)), H, W, R, S, P, Q, top, left),
        outputs={1: expect_lowered(lambda padded: padded)},
        grid=grid,
        block=(TILE_COLUMNS,),
        budgets=(
            Budget(
                "store requests to shared memory",
                copies,
                "one copy per warp and row of a tile; an `if` with a copy on either side runs both",
            ),
            Budget("global stores", size, "each element once"),
            NO_FLOAT64,
        ),
        duties=(NO_ARITHMETIC, Duty(FILLING_THREADS, last_block_size(P * Q, TILE_COLUMNS), "one thread per column")),
        dependences=(
            Dependence(
                COPIES, why, lambda disturbance: [expect_lowered(lambda padded: disturbance.disturb(COPIES, padded))]
            ),
        ),
        mistakes=tuple(filter(None, mistakes)),
    )


EXERCISE = Exercise(
    title="Padding without a branch",
    task="Let `ptx.cp_async` fill the tile, without an `if`: pixels by copies of 4 bytes, and the zeros of the padding "
    "by copies that read 0 bytes. An `if` runs both sides, so each warp copies twice: let `valid` decide.",
    points=3,
    function="fill",
    make_launch=make_launch,
    sizes=((7, 9, 3, 3, 1, 1), (6, 8, 4, 3, 2, 0), (1, 5, 3, 5, 1, 2), (260, 1, 2, 1, 1, 0)),  # H, W, R, S, top, left
    random_sizes=(
        (range(5, 12), range(6, 13), (2, 3, 4), (3, 5), (1, 2), (1, 2)),
        ((1, 2), Above(40), (3,), Above(5), (2,), Above(3)),
        (Above(30), (1, 3), Above(4), (3, 4), Above(3), (3,)),
    ),
)
