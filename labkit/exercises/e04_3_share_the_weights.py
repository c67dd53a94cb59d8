"""Exercise 04.3: one pass over a matrix for all inputs at a time."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect_product, matrix, unwritten

SIZES = ((9, 64, 8), (7, 75, 6))  # M, K, inputs


def launch(rng, M, K, inputs, BATCH):
    A, X = matrix(rng, M, K), matrix(rng, inputs, K)
    return Launch(
        label=f"A {M} x {K}, {inputs} inputs, a warp a row",
        args=(A, X, unwritten((inputs, M))),
        outputs={2: expect_product(X, np.ascontiguousarray(A.T))},
        grid=(M,),
        block=(32,),
        budgets=(
            Budget("global loads", M * K * (inputs + 1), "M * K for A, and M * K for each input, which caches serve"),
        ),
    )


EXERCISE = Exercise(
    id="04.3",
    title="Share the weights",
    task="Choose BATCH so that the kernel loads A once for up to 8 inputs.",
    points=2,
    function="many_inputs",
    launch=launch,
    sizes=SIZES,
    drawn=((range(10, 16), range(80, 120), range(5, 9)), (range(3, 9), range(1, 32), range(5, 9))),
    constants=("BATCH",),
    variants=(
        Variant("the batch that the exercise starts with", "budget", (("BATCH = 8", "BATCH = 1"),)),
        Variant("half of it", "budget", (("BATCH = 8", "BATCH = 4"),)),
        Variant("one too few", "budget", (("BATCH = 8", "BATCH = 7"),)),
        Variant("no batch", "launch", (("BATCH = 8", "BATCH = 0"),)),
        Variant("no whole number", "launch", (("BATCH = 8", "BATCH = 8.0"),)),
        Variant("sums of the batch before", "result", (("totals[b] = np.float32(0)", "totals[b] = np.float32(1)"),)),
        Variant("a length of the book's", "result", (("range(lane, A.shape[1], 32)", "range(lane, 64, 32)"),)),
        Variant(
            "at least 32 columns",
            "bounds",
            (("range(lane, A.shape[1], 32)", "range(lane, max(32, A.shape[1]), 32)"),),
        ),
        Variant("room for more", "solved", (("BATCH = 8", "BATCH = 12"),)),
    ),
)
