"""Three sums over the same rows, in one pass."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS
from labkit.exercises.problems import EPS, random_matrix, with_zeros
from labkit.ladder import Expected

WARP = 32


def make_launch(rng, M, N):
    X, Y = with_zeros(random_matrix(rng, M, N)), random_matrix(rng, M, N)
    pairs = ((X, Y), (X, X), (Y, Y))
    products = np.stack([a.astype(np.float64) * b for a, b in pairs])

    def expect_sums(products):
        return {2: Expected(products.sum(axis=2).T, N * EPS * np.abs(products).sum(axis=2).T)}

    return Launch(
        label=f"X and Y {M} x {N}, one warp per row",
        args=(X, Y, unwritten_array((M, 3))),
        outputs=expect_sums(products),
        grid=(M,),
        block=(WARP,),
        budgets=(
            Budget("global loads", 2 * M * N, "2 * M * N: each element of X and of Y once"),
            Budget("load requests", 2 * M * -(-N // WARP), "2 for 32 columns of a row"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, min(N, WARP) // 2, "one warp per row"),),  # a lane may take 2 columns
        mistakes=(
            *(Mistake("only the first 32 columns were added", lambda: expect_sums(products[..., :32])),) * (N > 31),
            Mistake("lane 0 stored its own sums", lambda: expect_sums(products[..., ::32])),
            Mistake("the sums of X * X and of Y * Y were exchanged", lambda: expect_sums(products[[0, 2, 1]])),
        ),
    )


EXERCISE = Exercise(
    title="Once through memory",
    task="This kernel goes through its rows three times. "
    "Make it go through them once, so that it loads each element of X and of Y a single time.",
    points=2,
    function="three_sums",
    make_launch=make_launch,
    sizes=((5, 96), (12, 77)),  # rows, columns
    random_sizes=((range(7, 20, 2), range(101, 200, 2)), ((1,), Above(1024)), (Above(20), (1, 2, 31)), ((3, 5), (0,))),
)
