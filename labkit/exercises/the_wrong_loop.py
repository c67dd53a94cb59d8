"""A triple loop with the wrong length in one of its loops."""

from labkit.checking import Above, Exercise
from labkit.exercises.matmuls import make_loop_launch


def make_launch(rng, M, N, K):
    return make_loop_launch(rng, M, N, K, "A @ B.T")


EXERCISE = Exercise(
    title="The wrong loop",
    task="This loop should compute C = A @ B.T, and is right only for square matrices. "
    "One of its loops has the wrong length: find it and fix it.",
    points=2,
    function="product",
    make_launch=make_launch,
    sizes=((5, 9, 7), (12, 3, 8), (4, 2, 1)),  # M, N, K
    random_sizes=(
        (range(13, 30, 2), range(11, 30, 2), range(11, 30, 2)),
        ((1,), Above(30), (1, 2, 3)),
        (Above(30), (2, 5, 7), Above(30)),
        ((2, 3), (1,), Above(1024)),
        ((2, 3), (5, 7), (0,)),  # sums of no products
    ),
    machine="cpu",
    finds_fault=True,
)
