"""Overlap-save: the start of each circular tile, and the part of it that is valid."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS
from labkit.exercises.problems import EPS, last_block_size
from labkit.ladder import Expected
from labkit.table import count_text

T = 32  # points per tile
DISTANCE = "In the line of `begin`, let tiles begin as many points apart as a tile has valid outputs: T - S + 1."
FIRST_VALID = "The first S - 1 outputs of a tile are invalid: output S - 1 is the first to store."


def make_launch(rng, points, taps):
    x, w = (rng.standard_normal(size).astype(np.float32) for size in (points, taps))
    float64s = [values.astype(np.float64) for values in (x, w)]
    value, size = np.convolve(*float64s), np.convolve(*map(np.abs, float64s))
    blocks = -(-value.size // (T - taps + 1))
    index, bound = np.arange(value.size), 2 * T * EPS * size

    def store_only(is_stored):
        return {2: Expected(np.where(is_stored, value, np.nan), bound)}

    return Launch(
        label=f"{count_text(points, 'point')}, {count_text(taps, 'tap')}",
        args=(x, w, unwritten_array(value.shape)),
        outputs={2: Expected(value, bound)},
        grid=(blocks,),
        block=(T,),
        budgets=(
            Budget("global loads", blocks * (T + taps), "T points and the taps per tile", {"w": blocks * taps}),
            Budget("global stores", value.size, "each output once"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(value.size, T - taps + 1), "one point per thread"),),
        mistakes=(
            Mistake("tiles did not overlap", lambda: store_only(index % T <= T - taps), DISTANCE),
            Mistake(
                "one valid output of each tile were left out",
                lambda: store_only(index % (T - taps + 1) > 0),
                FIRST_VALID,
            ),
            Mistake(
                "y ended where x ends",
                lambda: store_only(index < points),
                "Guard the stores by `y.size`: y is longer than x.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Overlap",
    task="Write the full convolution of a line, as `np.convolve(x, w)` gives it: `w` is rotated, and there are zeros "
    "around `x`. Each block has a tile of T points and its circular convolution. Write where the tile begins in `x`, "
    "and which of its outputs go where in `y`.",
    points=3,
    function="overlap_save",
    make_launch=make_launch,
    sizes=((100, 5), (31, 12), (64, 1), (3, 8), (40, T)),  # points of x, taps
    random_sizes=((range(150, 260), (2, 3, 7, 10)), ((1, 2, 5, 40, 41), (15, 31, 32)), (Above(200), (6, 11, 17))),
)
