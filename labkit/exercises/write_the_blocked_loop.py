"""Cache blocking, for sizes that are not multiples of the block."""

from dataclasses import replace

from labkit.checking import Above, Budget, Exercise, Mistake
from labkit.exercises.matmuls import add_to_C, make_loop_launch
from labkit.exercises.problems import expect_product


def make_launch(rng, M, N, K):
    budget = Budget("misses of the L1 cache", M * N * K // 64, "M * N * K / 64")
    launch = make_loop_launch(rng, M, N, K, budgets=(budget,) * (min(M, N, K) >= 10))
    A, B = launch.args[:2]
    replaced = Mistake("each product replaced what C held", lambda: {2: expect_product(A[:, -1:], B[-1:])})
    launch = add_to_C(rng, launch)
    return replace(launch, mistakes=(*launch.mistakes, replaced))


EXERCISE = Exercise(
    title="Write the blocked loop",
    task="Add A @ B to C in blocks that fit into the cache, so that L1 misses at most once in 64 multiply-adds.",
    points=3,
    function="blocked",
    make_launch=make_launch,
    sizes=((70, 150, 170),),  # M, N, K: B is three times as large as L1
    random_sizes=(
        (range(71, 90, 2), range(97, 120, 2), range(21, 40, 2)),
        (range(11, 20, 2), range(151, 165, 2), range(193, 205, 2)),
        ((1,), Above(170), (1, 2, 3)),
        (Above(90), (2, 5, 7), Above(205)),
    ),
    machine="cpu",
)
