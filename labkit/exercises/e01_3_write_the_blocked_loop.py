"""Exercise 01.3: cache blocking, for sides that are no multiples of the block."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import matmul_loop

SIZES = ((70, 150, 170),)  # M, N, K: B is three times as large as L1


def launch(rng, M, N, K):
    return matmul_loop(rng, M, N, K, (Budget("misses of the L1 cache", M * N * K // 64, "M * N * K / 64"),))


EXERCISE = Exercise(
    id="01.3",
    title="Write the blocked loop",
    task="Write C = A @ B in blocks that fit into the cache, so that L1 misses at most once in 64 multiply-adds.",
    points=3,
    function="blocked",
    launch=launch,
    sizes=SIZES,
    drawn=((range(71, 90), range(97, 120), range(20, 40)), (range(10, 20), range(151, 165), range(193, 205))),
    machine="cpu",
)
