"""Exercise 01.2: three loops in the order that walks down columns, and so misses the cache at each step."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import matmul_loop

SIZES = ((320, 48, 40), (12, 40, 600))  # M, N, K: columns of A and C, then of B, are longer than L1


def launch(rng, M, N, K):
    return matmul_loop(rng, M, N, K, (Budget("misses of the L1 cache", M * N * K // 10, "M * N * K / 10"),))


EXERCISE = Exercise(
    id="01.2",
    title="Order the loops",
    task="Change the order of the three loops so that L1 misses at most once in ten multiply-adds.",
    points=2,
    function="reordered",
    launch=launch,
    sizes=SIZES,
    drawn=((range(321, 340), range(49, 56), range(20, 30)), (range(8, 12), range(49, 56), range(601, 640))),
    machine="cpu",
)
