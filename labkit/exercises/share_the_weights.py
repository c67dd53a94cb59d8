"""The number of inputs that share each load of a matrix, under two budgets."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import expect_product, pad_to, random_matrix
from labkit.ladder import Expected

MAX_NUMBERS = 16


def make_launch(rng, M, K, inputs, BATCH):
    A, X = random_matrix(rng, M, K), random_matrix(rng, inputs, K)
    if M > 1:
        A[-1] = 0  # sums of 0 are to be stored, too
    product = expect_product(X, np.ascontiguousarray(A.T))
    allowed = 8 * M * K * inputs // 7
    shares = {"A": allowed - M * K * inputs, "X": M * K * inputs}
    return Launch(
        label=f"A {M} x {K}, {inputs} inputs, one warp per row",
        args=(A, X, unwritten_array((inputs, M))),
        outputs={2: product},
        grid=(M,),
        block=(32,),
        budgets=(
            Budget(
                "global loads",
                allowed,
                "one per 1.75 of 2 * M * K * inputs FLOPs",
                shares,
                "Each batch loads A once more, also a last one of few inputs: choose a BATCH that makes fewer batches.",
            ),
            Budget(SHARED_BYTES, 0, "each thread keeps its own sums"),
            Budget(
                LOCAL_NUMBERS,
                MAX_NUMBERS,
                "16, so that many threads fit on an SM",
                cure="`totals` has a number for each input of a batch: choose a smaller BATCH.",
            ),
        ),
        mistakes=(
            Mistake(
                "lane 0 stored its own sums",
                lambda: {2: expect_product(X[:, ::32], A[:, ::32].T)},
                "Store the sum of the warp's lanes, which `warp_sum` returns.",
            ),
            Mistake(
                "each sum began with that of the batch before",
                lambda: {2: add_batches(product, BATCH)},
                "Set the sums to 0 for each batch.",
            ),
        ),
    )


def add_batches(product, batch):
    """Add the sums of all batches before to those of each batch."""
    value, bound = (pad_to((batch, 1), X).reshape(-1, batch, X.shape[1]) for X in (product.value, product.bound))
    inputs = len(product.value)
    value, bound = (X.cumsum(axis=0).reshape(-1, X.shape[2])[:inputs] for X in (value, bound * len(value)))
    return Expected(value, bound)


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
        ((2, 3), (33, 41), (73, 79, 83)),  # no batch of 8 to 16 divides these
    ),
    constants=("BATCH",),
)
