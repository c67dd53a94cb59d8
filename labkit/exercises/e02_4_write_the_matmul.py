"""Exercise 02.4: a matmul with one thread an output, mapped so that loads coalesce."""

from labkit.exercises.budget import FLOAT32_ALONE, Budget
from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import DRAWN, matmul_launch

BLOCK = (32, 8)
SIZES = ((24, 64, 40), (13, 27, 50))  # M, N, K; the second is ragged


def launch(rng, M, N, K):
    warps = -(-N // 32) * -(-M // 8) * 8
    budgets = (
        Budget("global loads", 2 * M * N * K, "2 * M * N * K"),
        Budget("sectors loaded", 6 * warps * K, "6 for each warp and k"),
        FLOAT32_ALONE,
    )
    return matmul_launch(rng, M, N, K, BLOCK, "A.T @ B", budgets=budgets)


EXERCISE = Exercise(
    id="02.4",
    title="Write the matmul",
    task="Write C = A.T @ B, one thread an output and in float32, so that the threads of a warp read neighbours in B.",
    points=3,
    function="matmul",
    launch=launch,
    sizes=SIZES,
    drawn=DRAWN,
)
