"""Distances between all pairs of points, with a square of them per thread: a register tile that is no product."""

import numpy as np

from labkit.checking import NO_FLOAT64, Budget, Dependence, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, LOCAL_NUMBERS
from labkit.exercises.matmuls import RANDOM_SIZES
from labkit.exercises.problems import EPS, grid_for, pad_to
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS
from labkit.table import count_text

BM, BN, BK, TM, TN = 32, 32, 8, 4, 4
TERM = "Add `abs` of the difference of both coordinates, one term for each k."
POINTS = (
    "Take a thread's points in the loads from the tiles as in the stores: from both tiles, and from D, the same ones."
)


def make_launch(rng, M, N, K, unit=1.0):
    """Coordinates are whole multiples of `unit`, a power of two: sums are exact."""
    lowest = -99 if unit == 1 else 0  # infinite squares and products, but no differences of them
    X, Y = (np.float32(unit) * rng.integers(lowest, 100, (points, K)).astype(np.float32) for points in (M, N))
    differences = X[:, None].astype(float) - Y

    def expect_sums(terms):
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite there
            terms = terms.astype(np.float32).astype(float)
            return {2: Expected(terms.sum(2), EPS * np.abs(terms).sum(2))}

    exact = np.abs(differences).sum(2)
    rows, columns = np.indices((M, N))
    around = np.abs(pad_to((BM, 1), X)[:, None] - pad_to((BN, 1), Y).astype(float)).sum(2)  # up to whole tiles

    def expect_of(row, column):
        """Expect the sums of other points."""
        return {2: Expected(around[row, column], np.zeros_like(exact))}

    def neighbours(index):
        """Return the points that a thread has if they are neighbours, where its points should be `BM // TM` apart."""
        return index // BM * BM + index % (BM // TM) * TM + index % BM // (BM // TM)

    greatest = np.abs(differences).max(2, initial=0)
    last = np.abs(differences[..., K - 1 :]).sum(2) * (K % BK == 0)
    tiles = -(-M // BM) * -(-N // BN) * -(-K // BK)
    terms = tiles * BM * BN * BK
    shared_loads = {"X_tile": terms // TN, "Y_tile": terms // TM}
    global_loads = {"X": tiles * BM * BK, "Y": tiles * BN * BK}
    both_disturbed = Dependence(
        SHARED_LOADS,
        "take both coordinates of each term from the tiles in shared memory",
        lambda disturbed: [Expected(disturbed.factor * exact, np.zeros_like(exact))],  # the shift cancels
    )
    return Launch(
        label=f"X and Y of {M} and {count_text(N, 'point')}, {count_text(K, 'coordinate')} each"
        + (f", multiples of {unit:.2g}" if unit > 1 else ""),
        args=(X, Y, unwritten_array((M, N))),
        outputs={2: Expected(exact, np.zeros_like(exact))},
        grid=grid_for((N, M), (BN, BM)),
        block=(BN // TN, BM // TM),
        budgets=(
            Budget("shared loads", sum(shared_loads.values()), "8 for 16 terms", shared_loads),
            Budget("global loads", sum(global_loads.values()), "each element of a tile once", global_loads),
            Budget("global stores", M * N, "each distance once, when its sum is complete"),
            Budget(LOCAL_NUMBERS, 32, "16 sums and the coordinates of one k"),
            Budget(BARRIERS, 2 * tiles, "two per iteration of each block, before its tiles are used and after"),
            NO_FLOAT64,
        ),
        dependences=(both_disturbed,),
        mistakes=(
            Mistake("terms were squares", lambda: expect_sums(differences**2), TERM),
            Mistake("terms kept their signs", lambda: expect_sums(differences), TERM),
            Mistake("terms were products", lambda: expect_sums(X[:, None] * Y.astype(float)), TERM),
            Mistake(
                "only the largest term were kept",
                lambda: {2: Expected(greatest, np.zeros_like(exact))},
                "Add up the terms where the maximum is taken.",
            ),
            Mistake(
                "only the last term were kept",
                lambda: {2: Expected(last, np.zeros_like(exact))},
                "Add each term to its sum, with `+=`, in the loop over k.",
            ),
            Mistake(
                "only the last tile's terms were kept",
                lambda: expect_sums(np.abs(differences)[..., (K - 1) // BK * BK :]),
                "Set the sums to zero once, before the loop over `start`.",
            ),
            Mistake(
                "the last coordinate of each tile were left out",
                lambda: expect_sums(np.abs(differences)[..., np.arange(K) % BK < BK - 1]),
                "Let the loop over k take all BK coordinates of a tile.",
            ),
            Mistake(
                "a thread's points were neighbours in the tiles, but not in D",
                lambda: expect_of(neighbours(rows), neighbours(columns)),
                POINTS,
            ),
            Mistake(
                "a thread's points of X were TM apart in the tile, but not in D",
                lambda: expect_of(rows // BM * BM + rows % (BM // TM) + rows % BM // (BM // TM) * TM, columns),
                POINTS,
            ),
            Mistake(
                "points of X were taken by `x`, and those of Y by `y`",
                lambda: expect_of(rows // 8 * 8 + columns % 8, columns // 8 * 8 + rows % 8),
                POINTS,
            ),
        ),
    )


EXERCISE = Exercise(
    title="City blocks",
    task="In a city of square blocks, the distance between two points is the sum of |X[i, k] - Y[j, k]| over k. "
    "Write it into D for every point of X and every point of Y.",
    points=4,
    function="distances",
    make_launch=make_launch,
    sizes=((64, 96, 48), (37, 43, 21)),  # M, N, K; the second is ragged
    random_sizes=(*RANDOM_SIZES, ((3, 9), (5, 33), (9, 11), (2.0**70,))),  # squares of the last are infinite
)
