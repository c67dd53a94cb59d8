"""Three sums over the same rows, in one pass."""

from functools import partial

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS
from labkit.exercises.problems import EPS, random_matrix, with_zeros
from labkit.ladder import Expected

WARP = 32
NAMES = "X * Y", "X * X", "Y * Y"
ON = "Let each lane go on by 32 columns, in a loop to the end of the row."
ALL = "Add up what the lanes have by `warp_sum`, each of the three sums, before lane 0 stores it."
LANE = "Let each lane begin at the column of its own number, and go on by 32."


def make_launch(rng, M, N):
    X, Y = with_zeros(random_matrix(rng, M, N)), random_matrix(rng, M, N)
    pairs = ((X, Y), (X, X), (Y, Y))
    products = np.stack([a.astype(np.float64) * b for a, b in pairs])

    def expect_sums(products, times=1):
        return {2: Expected(times * products.sum(axis=2).T, times * N * EPS * np.abs(products).sum(axis=2).T)}

    def keep_own(number):
        own = products.copy()
        own[number, :, np.arange(N) % WARP > 0] = 0
        return expect_sums(own)

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
            *(Mistake("only the first 32 columns were added", lambda: expect_sums(products[..., :32]), ON),) * (N > 31),
            Mistake("lane 0 stored its own sums", lambda: expect_sums(products[..., ::32]), ALL),
            *(
                Mistake(f"lane 0 stored its own sum of {name}", partial(keep_own, i), ALL)
                for i, name in enumerate(NAMES)
            ),
            Mistake(
                "the sums of X * X and of Y * Y were exchanged",
                lambda: expect_sums(products[[0, 2, 1]]),
                "out has the sums in the order X * Y, X * X, Y * Y.",
            ),
            Mistake("all lanes took the columns of lane 0", lambda: expect_sums(products[..., ::32], WARP), LANE),
            Mistake("each lane took all columns", lambda: expect_sums(products, WARP), LANE),
            *(
                Mistake(
                    "each lane added its first columns again and again",
                    lambda: expect_sums(products[..., np.arange(N) % WARP]),
                    "Load the elements of a column inside of the loop over columns.",
                ),
            )
            * (N > 31),
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
