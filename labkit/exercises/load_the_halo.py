"""An image tile with its halo, loaded once per block."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Dependence, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOADING_THREADS
from labkit.conv import Forward
from labkit.exercises.problems import grid_for, last_block_size, shared_among_threads
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS

TILE_H, TILE_W = 8, 32
R, S = 3, 5

TURNED = "Tap (r, s) multiplies the pixel r rows below and s columns right of the first: add both to its place."


def make_launch(rng, P, Q):
    problem = Forward(1, 1, P + R - 1, Q + S - 1, 1, R, S)
    x, w, y, _ = problem.operands(seed=int(rng.integers(2**31)))
    if P > R and Q > S:
        x[..., :R, :S] = 0  # an output of 0 is to be stored, too

    def expect_outputs(x, w):
        (expected,) = problem.expected((x, w, y, problem)).values()
        return Expected(expected.value[0, 0], expected.bound[0, 0])

    def expected_results(disturbance):
        return [expect_outputs(disturbance.disturb(SHARED_LOADS, x), disturbance.disturb(SHARED_LOADS, w))]

    grid = grid_for((Q, P), (TILE_W, TILE_H))
    blocks, rows = int(np.prod(grid)), TILE_H + R - 1
    last_rows, last_cols = last_block_size(P, TILE_H) + R - 1, last_block_size(Q, TILE_W) + S - 1
    x_loads, w_loads = blocks * rows * (TILE_W + S - 1), blocks * R * S
    return Launch(
        label=f"y {P} x {Q}, blocks of {TILE_W} x {TILE_H}",
        args=(x[0, 0], w[0, 0], unwritten_array((P, Q))),
        outputs={2: expect_outputs(x, w)},
        grid=grid,
        block=(TILE_W, TILE_H),
        budgets=(
            Budget(
                "global loads",
                x_loads + w_loads,
                "per block, (HIGH + R - 1) * (WIDE + S - 1) pixels and the taps once",
                {"x": x_loads, "w": w_loads},
            ),
            Budget(
                "load requests",
                blocks * (-(-rows * (TILE_W + S - 1) // 32) + R),
                "per block, one per 32 of its pixels and one per row of taps",
            ),
            Budget(
                "sectors loaded",
                blocks * (8 * rows + 2 * R),
                "8 per row of a tile, whose pixels neighbours load together, and 2 per row of taps",
            ),
            NO_FLOAT64,
        ),
        duties=(shared_among_threads(last_rows * last_cols, most_per_thread=4, counter=LOADING_THREADS),),
        dependences=(Dependence(SHARED_LOADS, "take each pixel from the tile in shared memory", expected_results),),
        mistakes=(Mistake("the filter were turned", lambda: {2: expect_outputs(x, w[..., ::-1, ::-1])}, TURNED),),
    )


EXERCISE = Exercise(
    title="Load the halo in fewer requests",
    task="Fill the tile, halo and all, with 12 load requests per block for its pixels in place of 20 (3 more for "
    "the taps; the check counts all blocks). Load each pixel once. Neighbouring threads load neighbouring pixels.",
    points=3,
    function="with_halo",
    make_launch=make_launch,
    sizes=((16, 64), (21, 35), (5, 18)),  # rows and columns of y
    random_sizes=((range(33, 48, 2), range(33, 64, 2)), ((1,), Above(64)), (Above(48), (2, 7, 32))),
)
