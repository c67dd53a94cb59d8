"""Exercise 03.1: a tiled matmul without the barrier that protects the tile still being read."""

from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import matmul_launch

SIZES = ((24, 40, 32), (19, 26, 37))  # M, N, K; the second is ragged


def launch(rng, M, N, K):
    return matmul_launch(rng, M, N, K, block=(8, 8))


EXERCISE = Exercise(
    id="03.1",
    title="Put the barrier back",
    task="Some threads overwrite a tile that others still read. Add what is missing.",
    points=2,
    function="two_barriers",
    launch=launch,
    sizes=SIZES,
    drawn=((range(25, 50), range(41, 60), range(41, 70)),),
)
