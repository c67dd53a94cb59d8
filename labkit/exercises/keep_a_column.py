"""The one-dimensional register tile, with the tiles already in shared memory."""

from labkit.checking import NO_FLOAT64, Budget, Exercise
from labkit.checking.budget import BARRIERS
from labkit.exercises.matmuls import DRAWN_SCALED, FROM_TILES, product_launch, scaled

BM, BN, BK, TM = 32, 32, 8, 4
SIZES = ((64, 96, 48, 1.5), (37, 43, 21, -41.0))  # M, N, K, alpha; the second is ragged


def make_launch(rng, M, N, K, alpha):
    blocks, rounds = -(-M // BM) * -(-N // BN), -(-K // BK)
    multiply_adds = blocks * rounds * BM * BN * BK
    of_tiles = {"A_tile": multiply_adds, "B_tile": multiply_adds // TM}
    of_matrices = {"A": blocks * rounds * BM * BK, "B": blocks * rounds * BK * BN}
    budgets = (
        Budget("shared loads", sum(of_tiles.values()), "TM + 1 for TM multiply-adds", of_tiles),
        Budget("global loads", sum(of_matrices.values()), "each element of a tile once", of_matrices),
        Budget("global stores", M * N, "each element of C once, when its sum is complete"),
        Budget(BARRIERS, 2 * blocks * rounds, "two in each round of each block, before its tiles are used and after"),
        NO_FLOAT64,
    )
    shape = (BM, BN), (BN, BM // TM)
    return scaled(alpha, product_launch(rng, M, N, K, *shape, budgets=budgets, dependences=(FROM_TILES,)))


EXERCISE = Exercise(
    id="keep-a-column",
    title="Keep a column",
    task="The tiles are in shared memory. Let each thread add up its TM outputs, one below the other, "
    "with TM + 1 shared loads for each k, and store alpha times each.",
    points=3,
    function="column_matmul",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=DRAWN_SCALED,
)
