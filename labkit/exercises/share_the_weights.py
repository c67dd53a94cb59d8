"""The number of inputs that share each load of a matrix, under two budgets."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, unwritten_array
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import expect_product, random_matrix

MAX_NUMBERS = 16


def make_launch(rng, M, K, inputs, BATCH):
    A, X = random_matrix(rng, M, K), random_matrix(rng, inputs, K)
    allowed = 8 * M * K * inputs // 7
    shares = {"A": allowed - M * K * inputs, "X": M * K * inputs}
    return Launch(
        label=f"A {M} x {K}, {inputs} inputs, one warp per row",
        args=(A, X, unwritten_array((inputs, M))),
        outputs={2: expect_product(X, np.ascontiguousarray(A.T))},
        grid=(M,),
        block=(32,),
        budgets=(
            Budget("global loads", allowed, "one per 1.75 of 2 * M * K * inputs FLOPs", shares),
            Budget(SHARED_BYTES, 0, "none: each thread keeps its own sums"),
            Budget(LOCAL_NUMBERS, MAX_NUMBERS, "16, so that many threads fit on an SM"),
        ),
    )


EXERCISE = Exercise(
    title="Share the weights",
    task="Choose BATCH so that the kernel makes at least 1.75 FLOPs per global load, "
    "and keeps at most 16 numbers in a thread's own array.",
    points=2,
    function="many_inputs",
    make_launch=make_launch,
    sizes=((9, 64, 24), (7, 75, 48)),  # M, K, inputs
    random_sizes=(
        (range(11, 16), range(81, 120, 2), (24, 48)),
        ((1,), Above(120), (72,)),
        (Above(16), (1, 2, 31), Above(72, 24)),
    ),
    constants=("BATCH",),
)
