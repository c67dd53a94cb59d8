"""Three loops in an order that walks down columns and misses the cache at each step."""

from labkit.checking import Above, Budget, Exercise
from labkit.exercises.matmuls import make_loop_launch


def make_launch(rng, M, N, K):
    budget = Budget("misses of the L1 cache", M * N * K // 10, "M * N * K / 10")
    return make_loop_launch(rng, M, N, K, "A.T @ B", budgets=(budget,) * (min(M, K) >= 8 and N >= 40))


EXERCISE = Exercise(
    title="Order the loops",
    task="This loop computes C = A.T @ B. "
    "Change the order of its three loops so that L1 misses at most once in ten multiply-adds.",
    points=2,
    function="reordered",
    make_launch=make_launch,
    sizes=((600, 48, 24), (12, 40, 600)),  # M, N, K: columns of C, then of B, are longer than L1
    random_sizes=(
        (range(601, 640, 2), range(49, 56), range(15, 24, 2)),
        (range(9, 12), range(49, 56), range(601, 640, 2)),
        (Above(640), (1,), (5, 7)),
        ((19, 23), (2, 3), (1,)),
        ((1,), Above(56), Above(640)),
        ((2, 3), (5, 41), (0,)),  # sums of no products
    ),
    machine="cpu",
)
