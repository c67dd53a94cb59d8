"""Exercise 03.4: the tiled matmul, from a blank kernel, for any shape."""

from labkit.exercises.budget import FLOAT32_ALONE, Budget
from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import matmul_launch

TILE = 16
SIZES = ((48, 80, 64), (37, 43, 70), (9, 33, 5))  # M, N, K; two are ragged


def launch(rng, M, N, K):
    tiles = -(-M // TILE) * -(-N // TILE) * -(-K // TILE)
    budget = Budget("global loads", 2 * TILE**2 * tiles, "2 for each thread and tile, so that the edges have room")
    return matmul_launch(rng, M, N, K, (TILE, TILE), (budget, FLOAT32_ALONE))


EXERCISE = Exercise(
    id="03.4",
    title="Write the tiled matmul",
    task="Write C = A @ B in float32, with tiles in shared memory. "
    "Blocks are TILE x TILE threads; the shapes need not be multiples of TILE.",
    points=4,
    function="tiled_matmul",
    launch=launch,
    sizes=SIZES,
    drawn=((range(49, 64), range(81, 96), range(41, 64)), (range(49, 64), range(41, 64), range(81, 100))),
)
