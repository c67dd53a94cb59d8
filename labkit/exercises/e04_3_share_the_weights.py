"""Exercise 04.3: how many inputs share what is loaded of a matrix, under two budgets."""

import numpy as np

from labkit.exercises.budget import KEPT, Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect_product, matrix, unwritten

SIZES = ((9, 64, 24), (7, 75, 48))  # M, K, inputs
AT_MOST_KEPT = 16


def launch(rng, M, K, inputs, BATCH):
    A, X = matrix(rng, M, K), matrix(rng, inputs, K)
    allowed = 8 * M * K * inputs // 7
    of_arrays = {"A": allowed - M * K * inputs, "X": M * K * inputs}
    return Launch(
        label=f"A {M} x {K}, {inputs} inputs, a warp a row",
        args=(A, X, unwritten((inputs, M))),
        outputs={2: expect_product(X, np.ascontiguousarray(A.T))},
        grid=(M,),
        block=(32,),
        budgets=(
            Budget("global loads", allowed, "one for each 1.75 of 2 * M * K * inputs FLOPs", of_arrays),
            Budget(KEPT, AT_MOST_KEPT, "16, so that many threads fit on an SM"),
        ),
    )


EXERCISE = Exercise(
    id="04.3",
    title="Share the weights",
    task="Choose BATCH so that the kernel makes at least 1.75 FLOPs for each global load, "
    "and keeps at most 16 numbers in a thread's own array.",
    points=2,
    function="many_inputs",
    launch=launch,
    sizes=SIZES,
    drawn=((range(10, 16), range(80, 120), range(24, 49, 24)), (range(3, 9), range(1, 32), range(24, 73, 24))),
    constants=("BATCH",),
    variants=(
        Variant("the batch that the exercise starts with", "budget", (("BATCH = 8", "BATCH = 1"),)),
        Variant("half of it", "budget", (("BATCH = 8", "BATCH = 4"),)),
        Variant("one too few", "budget", (("BATCH = 8", "BATCH = 7"),)),
        Variant("one too many", "budget", (("BATCH = 8", "BATCH = 17"),)),
        Variant("room for any number of inputs", "budget", (("BATCH = 8", "BATCH = 1000"),)),
        Variant("no batch", "launch", (("BATCH = 8", "BATCH = 0"),)),
        Variant("no whole number", "launch", (("BATCH = 8", "BATCH = 8.0"),)),
        Variant("sums of the batch before", "result", (("totals[b] = np.float32(0)", "totals[b] = np.float32(1)"),)),
        Variant("a length of the book's", "result", (("range(lane, A.shape[1], 32)", "range(lane, 64, 32)"),)),
        Variant(
            "at least 32 columns",
            "bounds",
            (("range(lane, A.shape[1], 32)", "range(lane, max(32, A.shape[1]), 32)"),),
        ),
        Variant("a batch that does not divide the inputs", "solved", (("BATCH = 8", "BATCH = 11"),)),
        Variant("the largest", "solved", (("BATCH = 8", "BATCH = 16"),)),
    ),
)
