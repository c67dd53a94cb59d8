"""Two steps of a five-point stencil in one launch, with a halo two pixels wide."""

from itertools import product
from typing import Any

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Dependence, Exercise, Launch, unwritten_array
from labkit.exercises.problems import EPS, grid_for, matrix
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS, Disturbance

HIGH, WIDE = 8, 32
SIZES = ((16, 64), (21, 37), (3, 20))  # rows, columns
ROUNDINGS = 8  # of a step, and then some
EDGE = 2  # so far from the border two steps reach
UNDISTURBED = (Disturbance(),) * 4


def make_launch(rng, H, W):
    t = matrix(rng, H, W)
    rate = np.float32(rng.uniform(0.05, 0.3) * rng.choice((-1, 1)))

    def results(disturbance):
        """A thread may keep its own elements; those beside it come from shared memory in the first step."""
        either = disturbance, Disturbance()
        first = product(either, either, either, (disturbance,))
        found = []
        for steps in product(first, product(either, repeat=4)):
            expected = _heated(t, rate, steps)
            inside = np.full(t.shape, np.inf)  # beside a tile's edge some are kept and some taken, or zeros are loaded
            rows, columns = np.indices(t.shape)
            within: Any = (rows % HIGH % (HIGH - 1) > 0) & (columns % WIDE % (WIDE - 1) > 0)
            within[:EDGE] = within[-EDGE:] = within[:, :EDGE] = within[:, -EDGE:] = False
            inside[within] = expected.bound[within]
            found.append(Expected(expected.value, inside))
        return found

    grid = grid_for((W, H), (WIDE, HIGH))
    loads = int(np.prod(grid)) * (HIGH + 2 * EDGE) * (WIDE + 2 * EDGE)
    of_tiles = Dependence(SHARED_LOADS, "take the neighbours from the tile in shared memory", results)
    return Launch(
        label=f"t {H} x {W}, blocks of {WIDE} x {HIGH}",
        args=(t, unwritten_array((H, W)), rate),
        outputs={1: _heated(t, rate, (UNDISTURBED, UNDISTURBED))},
        grid=grid,
        block=(WIDE, HIGH),
        budgets=(
            Budget("global loads", loads, "(HIGH + 4) * (WIDE + 4) for each block"),
            Budget("global stores", H * W, "each element once"),
            NO_FLOAT64,
        ),
        dependences=(of_tiles,) * (min(H, W) > 2 * HIGH),
    )


def _heated(t, rate, steps):
    """After steps in which the middle, the middle that is taken off, the column and the row are disturbed or not.

    Around the plate it is 0.
    """
    value, bound = t.astype(float), np.zeros(t.shape)
    for step in steps:
        middle, off, column, row = (one.scaled(SHARED_LOADS, value) for one in step)
        size = np.abs(middle) + abs(rate) * (4 * np.abs(off) + _beside(np.abs(column), np.abs(row)))
        carried = max(one.factor for one in step) * bound
        bound = (1 + 4 * abs(rate)) * carried + abs(rate) * _beside(carried, carried)
        bound += ROUNDINGS * EPS * size
        value = middle + rate * (_beside(column, row) - 4 * off)
    return Expected(value, bound)


def _beside(column, row):
    """The sum of the two neighbours in the column and the two in the row."""
    column, row = np.pad(column, 1), np.pad(row, 1)
    return column[:-2, 1:-1] + column[2:, 1:-1] + row[1:-1, :-2] + row[1:-1, 2:]


EXERCISE = Exercise(
    id="two-steps-of-heat",
    title="Two steps of heat",
    task="A step of heat gives each element `t + rate * (up + down + left + right - 4 * t)`; around the plate it is "
    "always 0. Compute in float32: `np.float32(4)`, since a plain 4 makes float64 of it. Write the plate after two "
    "steps into `later`, in one launch, and load each tile once, with a halo.",
    points=4,
    function="two_steps",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(
        (range(33, 48, 2), range(33, 64, 2)),
        ((1, 2), Beyond(64)),
        (Beyond(48), (5, 8, 32)),
    ),
)
