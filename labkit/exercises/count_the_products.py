"""The Winograd tile with the fewest multiplications, edges included."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect, grid_for, one_thread_per_element

BLOCK = (32,)
LARGEST_TILE = 6  # outputs along a side


def make_launch(rng, layers, max_rows):
    P, Q = (rng.integers(1, max_rows + 1, layers).astype(np.int32) for _ in range(2))
    R = rng.geometric(1 / 4, layers).astype(np.int32)
    common = slice(layers // 3)
    P[common] = Q[common] = rng.choice((7, 13, 14, 28, 55), layers // 3)
    R[common] = 3
    # Layers of one tile; each m is best for some of them, if there are enough.
    one_tile = np.arange(layers // 3, layers)[: 2 * LARGEST_TILE]
    m = rng.permutation(np.arange(len(one_tile)) % LARGEST_TILE + 1)
    smaller = m - rng.integers(0, 2, len(m)) * (m > 1)  # or one less than a tile
    P[one_tile], Q[one_tile] = rng.permuted([m, smaller], axis=0)
    R[one_tile] = rng.integers(3, 8, len(one_tile))
    tied = slice(layers - layers // 8, layers)
    P[tied], Q[tied], R[tied] = rng.permutation(_find_ties())[: layers // 8].T
    counts = _count_products(P, Q, R)
    all_sides = np.arange(1, LARGEST_TILE + 1)
    m = all_sides[:, None]
    tiles = -(-P // m) * -(-Q // m)

    def mistake(cause, wrong, first=2):
        """Make a mistake in the products of tiles from a side on."""
        return Mistake(cause, lambda: choose(np.where(m < first, counts, wrong)))

    def choose(counts, sides=all_sides):
        return {3: expect(counts.min(axis=0).astype(float)), 4: expect(sides[counts.argmin(axis=0)].astype(float))}

    even = np.array([0, *range(1, LARGEST_TILE, 2)])
    right = choose(counts)
    return Launch(
        label=f"{layers} layer{'s'[: layers > 1]}",
        args=(P, Q, R, unwritten_array((layers,), np.int32), unwritten_array((layers,), np.int32)),
        outputs=right,
        grid=grid_for((layers,), BLOCK),
        block=BLOCK,
        budgets=(Budget("global stores", 2 * layers, "two numbers per layer"),),
        duties=(one_thread_per_element((layers,), BLOCK),),
        mistakes=(
            mistake("tiles at the edge were left out", (P // m) * (Q // m) * (m + R - 1) ** 2),
            mistake("the number of tiles were P * Q / m^2, rounded down", P * Q // m**2 * (m + R - 1) ** 2),
            mistake("a tile had m * m products", tiles * m**2),
            mistake("a tile had m + R - 1 products", tiles * (m + R - 1)),
            mistake("R were always 3", tiles * (m + 2) ** 2),
            Mistake(
                "the largest m of those that are as good were chosen", lambda: choose(counts[::-1], all_sides[::-1])
            ),
            Mistake("m were 1 or even", lambda: choose(counts[even], all_sides[even])),
            Mistake("m ended at 5", lambda: choose(counts[:5])),
            Mistake("m were always 1", lambda: choose(counts[:1])),
            Mistake("m were always 6", lambda: choose(counts[5:], all_sides[5:])),
            Mistake("the two results were exchanged", lambda: {3: right[4], 4: right[3]}),
        ),
    )


def _count_products(P, Q, R):
    """Return the number of products, one row per m."""
    m = np.arange(1, LARGEST_TILE + 1)[:, None]
    return -(-P // m) * -(-Q // m) * (m + R - 1) ** 2


def _find_ties():
    """Return small layers with a tie of two tiles, of which the smaller is not 1 or the larger is the largest."""
    layers = np.indices((60, 60, 7)).reshape(3, -1) + 1
    counts = _count_products(*layers)
    fewest = counts == counts.min(axis=0)
    return layers.T[(fewest.sum(axis=0) > 1) & (~fewest[0] | fewest[-1])]


EXERCISE = Exercise(
    title="Count the products",
    task="Layer i has P[i] x Q[i] outputs, of R[i] x R[i] taps. How many products does F(m x m, R x R) take for them, "
    "with one channel and one filter? Store the fewest for m from 1 to 6 in `products[i]`, and that m in `best[i]`. "
    "If several m tie, store the smallest. Store each number once.",
    points=3,
    function="fewest",
    make_launch=make_launch,
    sizes=((7, 60), (40, 230), (1, 12)),  # layers, upper limit of output rows
    random_sizes=((Above(40), Above(60)), (range(2, 32), (15, 100))),
)
