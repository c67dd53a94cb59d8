"""How many inputs share what is loaded of a matrix, under two budgets."""

import numpy as np

from labkit.checking import Beyond, Budget, Exercise, Launch, unwritten_array
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import expect_product, matrix

SIZES = ((9, 64, 24), (7, 75, 48))  # M, K, inputs
AT_MOST_KEPT = 16


def make_launch(rng, M, K, inputs, BATCH):
    A, X = matrix(rng, M, K), matrix(rng, inputs, K)
    allowed = 8 * M * K * inputs // 7
    of_arrays = {"A": allowed - M * K * inputs, "X": M * K * inputs}
    return Launch(
        label=f"A {M} x {K}, {inputs} inputs, a warp a row",
        args=(A, X, unwritten_array((inputs, M))),
        outputs={2: expect_product(X, np.ascontiguousarray(A.T))},
        grid=(M,),
        block=(32,),
        budgets=(
            Budget("global loads", allowed, "one for each 1.75 of 2 * M * K * inputs FLOPs", of_arrays),
            Budget(SHARED_BYTES, 0, "none: each thread keeps its own sums"),
            Budget(LOCAL_NUMBERS, AT_MOST_KEPT, "16, so that many threads fit on an SM"),
        ),
    )


EXERCISE = Exercise(
    id="share-the-weights",
    title="Share the weights",
    task="Choose BATCH so that the kernel makes at least 1.75 FLOPs for each global load, "
    "and keeps at most 16 numbers in a thread's own array.",
    points=2,
    function="many_inputs",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(
        (range(11, 16), range(81, 120, 2), (24, 48)),
        ((1,), Beyond(120), (72,)),
        (Beyond(16), (1, 2, 31), Beyond(72, 24)),
    ),
    constants=("BATCH",),
)
