"""A one-dimensional register tile over tiles in shared memory."""

from dataclasses import replace

import numpy as np

from labkit.checking import NO_FLOAT64, Budget, Exercise, Mistake
from labkit.checking.budget import BARRIERS
from labkit.exercises.matmuls import RANDOM_SIZES_AND_ALPHA, USES_TILES, make_tiled_launch, round_up, scale_by_alpha
from labkit.ladder import Expected

BM, BN, BK, TM = 32, 32, 8, 4


def make_launch(rng, M, N, K, alpha):
    blocks, k_tiles = -(-M // BM) * -(-N // BN), -(-K // BK)
    multiply_adds = blocks * k_tiles * BM * BN * BK
    shared_loads = {"A_tile": multiply_adds, "B_tile": multiply_adds // TM}
    global_loads = {"A": blocks * k_tiles * BM * BK, "B": blocks * k_tiles * BK * BN}
    budgets = (
        Budget("shared loads", sum(shared_loads.values()), "TM + 1 for TM multiply-adds", shared_loads),
        Budget("global loads", sum(global_loads.values()), "each element of a tile once", global_loads),
        Budget("global stores", M * N, "each element of C once, when its sum is complete"),
        Budget("sectors stored", 5 * M * -(-N // BN), "5 per row of a tile, whose neighbours a warp stores together"),
        Budget(BARRIERS, 2 * blocks * k_tiles, "two per iteration of each block, before its tiles are used and after"),
        NO_FLOAT64,
    )
    shape = (BM, BN), (BN, BM // TM)
    launch = make_tiled_launch(rng, M, N, K, *shape, step=BK, budgets=budgets, dependences=(USES_TILES,))
    launch = scale_by_alpha(alpha, launch)
    return replace(launch, mistakes=(*launch.mistakes, *mistakes_in_rows(launch.outputs[3])))


def mistakes_in_rows(product):
    """Make the mistakes by which the rows that a thread adds up are not those that it stores."""
    M = len(product.value)
    rows = np.arange(round_up(M, BM))
    top, y, i = rows // BM * BM, rows % BM // TM, rows % TM
    value, bound = (np.pad(X, ((0, len(rows) - M), (0, 0))) for X in (product.value, product.bound))
    apart = (top + y + i * (BM // TM))[:M]
    last = np.where(i == 0, rows + TM - 1, 0)[:M]
    only_first = np.where((i == 0)[:M, None], value[last], np.nan)
    return (
        Mistake("each thread added up rows that are BM / TM apart", lambda: {3: Expected(value[apart], bound[apart])}),
        Mistake("each thread stored all its sums in one row", lambda: {3: Expected(only_first, bound[last])}),
    )


EXERCISE = Exercise(
    title="Keep a column",
    task="The tiles are in shared memory. Let each thread add up its TM outputs, one below the other, "
    "with TM + 1 shared loads per k, and store alpha times each.",
    points=3,
    function="column_matmul",
    make_launch=make_launch,
    sizes=((64, 96, 48, 1.5), (37, 43, 21, -41.0)),  # M, N, K, alpha; the second is ragged
    random_sizes=RANDOM_SIZES_AND_ALPHA,
)
