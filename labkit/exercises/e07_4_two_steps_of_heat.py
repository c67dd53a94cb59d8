"""Exercise 07.4: two steps of a five-point stencil in one launch, with a halo two pixels wide."""

from itertools import product

import numpy as np

from labkit.exercises.budget import FLOAT32_ALONE, Budget
from labkit.exercises.duty import Dependence
from labkit.exercises.exercise import Beyond, Exercise, Launch
from labkit.exercises.problems import grid_for, matrix, unwritten
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS, Disturbance

HIGH, WIDE = 8, 32
SIZES = ((16, 64), (21, 37), (3, 20))  # rows, columns
ROUNDINGS = 8  # of a step, and then some
EDGE = 2  # so far from the border two steps reach
UNDISTURBED = Disturbance(), Disturbance()


def launch(rng, H, W):
    t = matrix(rng, H, W)
    rate = np.float32(rng.uniform(0.05, 0.3) * rng.choice((-1, 1)))

    def results(disturbance):
        """The middle comes from shared memory or was kept; in the second step all five may be a thread's own."""
        taken, kept = (disturbance, disturbance), (Disturbance(), disturbance)
        found = []
        for steps in product((taken, kept), (taken, kept, UNDISTURBED)):
            expected = _heated(t, rate, steps)
            bound = expected.bound.copy()
            bound[:EDGE] = bound[-EDGE:] = bound[:, :EDGE] = bound[:, -EDGE:] = np.inf  # zeros may be loaded there
            found.append(Expected(expected.value, bound))
        return found

    grid = grid_for((W, H), (WIDE, HIGH))
    loads = int(np.prod(grid)) * (HIGH + 2 * EDGE) * (WIDE + 2 * EDGE)
    of_tiles = Dependence(SHARED_LOADS, "take the neighbours from the tile in shared memory", results)
    return Launch(
        label=f"t {H} x {W}, blocks of {WIDE} x {HIGH}",
        args=(t, unwritten((H, W)), rate),
        outputs={1: _heated(t, rate, (UNDISTURBED, UNDISTURBED))},
        grid=grid,
        block=(WIDE, HIGH),
        budgets=(
            Budget("global loads", loads, "(HIGH + 4) * (WIDE + 4) for each block"),
            Budget("global stores", H * W, "each element once"),
            FLOAT32_ALONE,
        ),
        dependences=(of_tiles,) * (min(H, W) > 2 * EDGE),
    )


def _heated(t, rate, steps):
    """After steps in which the middle and its neighbours are seen as they are disturbed; around the plate it is 0."""
    value, bound = t.astype(float), np.zeros(t.shape)
    for of_middle, of_neighbours in steps:
        middle, around = of_middle.scaled(SHARED_LOADS, value), of_neighbours.scaled(SHARED_LOADS, value)
        size = (1 + 4 * abs(rate)) * np.abs(middle) + abs(rate) * _sum_around(np.abs(around))
        carried = max(of_middle.factor, of_neighbours.factor) * bound
        bound = (1 + 4 * abs(rate)) * carried + abs(rate) * _sum_around(carried)
        bound += ROUNDINGS * np.finfo(np.float32).eps * size
        value = middle + rate * (_sum_around(around) - 4 * middle)
    return Expected(value, bound)


def _sum_around(t):
    around = np.pad(t, 1)
    return around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]


EXERCISE = Exercise(
    id="07.4",
    title="Two steps of heat",
    task="A step of heat gives each element `t + rate * (up + down + left + right - 4 * t)`; around the plate it is "
    "always 0. Compute in float32: `np.float32(4)`, since a plain 4 makes float64 of it. Write the plate after two "
    "steps into `later`, in one launch, and load each tile once, with a halo.",
    points=4,
    function="two_steps",
    launch=launch,
    sizes=SIZES,
    drawn=(
        (range(33, 48, 2), range(33, 64, 2)),
        ((1, 2), Beyond(64)),
        (Beyond(48), (5, 8, 32)),
    ),
)
