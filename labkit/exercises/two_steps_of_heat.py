"""Two steps of a five-point stencil in one launch, with a halo of two pixels."""

from itertools import product
from typing import Any

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Dependence, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOADING_THREADS
from labkit.checking.placed_cure import PlacedCure, first_store_of
from labkit.exercises.problems import EPS, grid_for, last_block_size, random_matrix, shared_among_threads
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS, Disturbance

TILE_H, TILE_W = 8, 32
ROUNDINGS = 8  # upper limit for one step
HALO = 2
UNDISTURBED = (Disturbance(),) * 4


def make_launch(rng, H, W, sign):
    t = random_matrix(rng, H, W)
    if min(H, W) > 2 * HALO:
        t[:3, :3] = 0  # a later temperature of 0 is to be stored, too
    rate = np.float32(sign * rng.uniform(0.05, 0.3))

    def expected_results(disturbance):
        """A thread may keep its own elements; their neighbours come from shared memory in the first step."""
        either = disturbance, Disturbance()
        first = product(either, either, either, (disturbance,))
        results = []
        for steps in product(first, product(either, repeat=4)):
            expected = _simulate_heat(t, rate, steps)
            bound = np.full(t.shape, np.inf)  # at a tile's edge some are kept and some loaded, or zeros are loaded
            rows, columns = np.indices(t.shape)
            interior: Any = (rows % TILE_H % (TILE_H - 1) > 0) & (columns % TILE_W % (TILE_W - 1) > 0)
            interior[:HALO] = interior[-HALO:] = interior[:, :HALO] = interior[:, -HALO:] = False
            bound[interior] = expected.bound[interior]
            results.append(Expected(expected.value, bound))
        return results

    whole, around = _simulate_heat(t, rate, (UNDISTURBED, UNDISTURBED)), ((HALO, 0), (HALO, 0))
    grid = grid_for((W, H), (TILE_W, TILE_H))
    loads = int(np.prod(grid)) * (TILE_H + 2 * HALO) * (TILE_W + 2 * HALO)
    last_pixels = last_block_size(H, TILE_H) * last_block_size(W, TILE_W)  # of the last block, without its halo
    uses_tile = Dependence(SHARED_LOADS, "take the neighbours from the tile in shared memory", expected_results)
    return Launch(
        label=f"t {H} x {W}, blocks of {TILE_W} x {TILE_H}",
        args=(t, unwritten_array((H, W)), rate),
        outputs={1: whole},
        grid=grid,
        block=(TILE_W, TILE_H),
        budgets=(
            Budget("global loads", loads, "(HIGH + 4) * (WIDE + 4) per block"),
            Budget("global stores", H * W, "each element once"),
            NO_FLOAT64,
        ),
        duties=(shared_among_threads(last_pixels, most_per_thread=2, counter=LOADING_THREADS),),
        dependences=(uses_tile,) * (min(H, W) > 2 * TILE_H),
        mistakes=(
            Mistake(
                "there were only one step",
                lambda: {1: _simulate_heat(t, rate, (UNDISTURBED,))},
                "Let the first step store what it heated in the tile from which the second step takes all elements.",
            ),
            Mistake(
                "the first step heated what is around the plate",
                lambda: {1: _simulate_wider_plate(t, rate)},
                PlacedCure(
                    "In the first step, store 0 for each element of the tile that is outside of the plate.",
                    first_store_of("rate", stores=2),
                ),
            ),
            Mistake(
                "nothing were subtracted in a step",
                lambda: _expect_nearly(_heat(_heat(t, rate, subtracted=0), rate, subtracted=0), t),
                "In both steps, subtract 4 times the element itself from the sum of its neighbours.",
            ),
            Mistake(
                "the rate of one of both steps were 1",
                lambda: _expect_nearly(_heat(_heat(t, rate), 1), t),
                "Multiply by `rate` in both steps.",
            ),
            Mistake(
                "the second step added to the temperature before the first",
                lambda: _expect_nearly(_heat(_heat(t, rate), rate) - _heat(t, rate) + t, t),
                "In the second step, take the element itself from the first step's results, as its neighbours.",
            ),
            Mistake(
                "around the plate it were as warm as at its edge",
                lambda: _expect_nearly(_heat(_heat(np.pad(t, 1, "edge"), rate)[1:-1, 1:-1], rate), t),
                "Fill the tile with 0 where it is outside of the plate.",
            ),
            Mistake(
                "the tiles began at a block's first output",
                lambda: {1: Expected(np.pad(whole.value[HALO:, HALO:], around, constant_values=np.nan), whole.bound)},
                "A tile begins 2 rows above and 2 columns left of its outputs: subtract 2 from `top` and `left`.",
            ),
        ),
    )


def _simulate_wider_plate(t, rate):
    """Simulate two steps on a plate with a rim that is 0 before the first."""
    expected = _simulate_heat(np.pad(t, HALO), rate, (UNDISTURBED, UNDISTURBED))
    return Expected(*(array[HALO:-HALO, HALO:-HALO] for array in (expected.value, expected.bound)))


def _heat(t, rate, subtracted=4):
    """Return the plate after a step."""
    return t + rate * (_add_neighbours(t, t) - subtracted * t)


def _expect_nearly(value, t):
    """Expect a value that a mistake makes of a plate."""
    return {1: Expected(value, np.full(t.shape, 1000 * EPS * np.abs(t).max()))}


def _simulate_heat(t, rate, steps):
    """Simulate steps on a plate surrounded by 0.

    Each step names the disturbance, or none, of the middle, the subtracted middle, the column and the row.
    """
    value, bound = t.astype(float), np.zeros(t.shape)
    for step in steps:
        middle, subtracted, column, row = (disturbance.disturb(SHARED_LOADS, value) for disturbance in step)
        size = np.abs(middle) + abs(rate) * (4 * np.abs(subtracted) + _add_neighbours(np.abs(column), np.abs(row)))
        old_bound = max(disturbance.factor for disturbance in step) * bound
        bound = (1 + 4 * abs(rate)) * old_bound + abs(rate) * _add_neighbours(old_bound, old_bound)
        bound += ROUNDINGS * EPS * size
        value = middle + rate * (_add_neighbours(column, row) - 4 * subtracted)
    return Expected(value, bound)


def _add_neighbours(column, row):
    """Add the two neighbours in the column and the two in the row."""
    column, row = np.pad(column, 1), np.pad(row, 1)
    return column[:-2, 1:-1] + column[2:, 1:-1] + row[1:-1, :-2] + row[1:-1, 2:]


EXERCISE = Exercise(
    title="Two steps of heat",
    task="A step of heat gives each element `t + rate * (up + down + left + right - 4 * t)`; the temperature "
    "around the plate is always 0. Compute in float32: `np.float32(4)`, since a plain 4 makes the product float64. "
    "Write the plate after two steps into `later`, in one launch, and load each tile once, with a halo.",
    points=4,
    function="two_steps",
    make_launch=make_launch,
    sizes=((16, 64, 1), (21, 37, -1), (3, 20, 1)),  # rows, columns, sign of the rate
    random_sizes=(
        (range(33, 48, 2), range(33, 64, 2), (1, -1)),
        ((1, 2), Above(64), (1, -1)),
        (Above(48), (5, 8, 32), (1, -1)),
    ),
)
