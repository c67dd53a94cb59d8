"""Three sums over the same rows, in one pass."""

import numpy as np

from labkit.checking.budget import FLOAT32_ALONE, Budget
from labkit.checking.exercise import Beyond, Exercise, Launch
from labkit.checking.unwritten import unwritten
from labkit.exercises.problems import matrix
from labkit.ladder import Expected

SIZES = ((5, 96), (12, 77))  # rows, columns


def launch(rng, M, N):
    X, Y = matrix(rng, M, N), matrix(rng, M, N)
    pairs = ((X, Y), (X, X), (Y, Y))
    products = np.stack([a.astype(np.float64) * b for a, b in pairs])
    return Launch(
        label=f"X and Y {M} x {N}, a warp a row",
        args=(X, Y, unwritten((M, 3))),
        outputs={2: Expected(products.sum(axis=2).T, N * np.finfo(np.float32).eps * np.abs(products).sum(axis=2).T)},
        grid=(M,),
        block=(32,),
        budgets=(Budget("global loads", 2 * M * N, "2 * M * N: each element of X and of Y once"), FLOAT32_ALONE),
    )


EXERCISE = Exercise(
    id="once-through-memory",
    title="Once through memory",
    task="This kernel goes through its rows three times. "
    "Make it go through them once, so that it loads each element of X and of Y a single time.",
    points=2,
    function="three_sums",
    launch=launch,
    sizes=SIZES,
    drawn=((range(7, 20, 2), range(101, 200, 2)), ((1,), Beyond(200)), (Beyond(20), (1, 2, 31))),
)
