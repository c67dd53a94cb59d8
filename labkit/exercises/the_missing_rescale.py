"""Softmax sums relative to a reference maximum that moves late, and the rescaling that each move needs."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, random_matrix
from labkit.ladder import Expected
from labkit.table import count_text

QUERIES, KEYS = 32, 8  # threads per block, keys per tile
THRESHOLD = 8  # the origin moves to a score that is more than this above it


def make_launch(rng, queries, keys):
    Q, K = random_queries_and_keys(rng, queries, keys)
    V = random_matrix(rng, keys, HEAD_DIM)
    scores = Q.astype(float) @ K.T
    origins_so_far = find_origins(scores)
    origins = origins_so_far[:, -1]
    tiles, blocks = -(-keys // KEYS), -(-queries // QUERIES)
    # a sum over keys, a rescaling for each tile, 32 for the exponential, and the error of its exponent
    roundings, V_size = keys + 4 * tiles + 32, np.abs(V.astype(float))

    def expect_parts(exponents):
        """Expect sums and totals of weights with these exponents."""
        weights = np.exp(exponents)
        error = EPS * (roundings + 2 * np.abs(exponents)) * weights
        return {
            3: Expected((weights @ V).T, (error @ V_size + MIN_NORMAL * V_size.sum(0)).T),
            4: Expected(weights.sum(1), error.sum(1) + keys * MIN_NORMAL),
            5: Expected(origins, np.zeros(queries)),
        }

    exponents, largest = scores - origins[:, None], scores.max(1)
    right = expect_parts(exponents)
    late = (origins_so_far - origins[:, None]).repeat(KEYS, 1)[:, :keys]
    return Launch(
        label=f"{count_text(queries, 'query', 'queries')} and {count_text(keys, 'key')}",
        args=(
            Q.T.copy(),
            K,
            V,
            unwritten_array((HEAD_DIM, queries)),
            unwritten_array((queries,)),
            unwritten_array((queries,)),
        ),
        outputs=right,
        grid=(blocks,),
        block=(QUERIES,),
        budgets=(
            Budget(
                "global loads",
                queries * HEAD_DIM + 2 * blocks * keys * HEAD_DIM,
                "a query once, and each key and value once per block",
            ),
            Budget("global stores", queries * (HEAD_DIM + 2), "8 sums, one total and one origin per query"),
            Budget("load requests", blocks * (HEAD_DIM + 4 * tiles), "8 per warp for its queries, and 4 per tile"),
            Budget(LOCAL_NUMBERS, 2 * HEAD_DIM + KEYS + 8, "32: a query, its sums, and the scores of a tile"),
            Budget(SHARED_BYTES, 8 * KEYS * HEAD_DIM, "those of a tile of K and one of V"),
            Budget(BARRIERS, 2 * blocks * tiles, "two per tile and block"),
            NO_FLOAT64,
        ),
        mistakes=(
            Mistake(
                "the origin were the largest score of all",
                lambda: expect_parts(scores - largest[:, None]) | {5: Expected(largest, np.zeros(queries))},
                "Keep the rule by which the origin moves: only if a score is more than 8 above it.",
            ),
            Mistake(
                "the origin that is stored were the largest score",
                lambda: {5: Expected(largest, np.zeros(queries))},
                "Store `origin`, to which the weights are relative, not the maximum.",
            ),
            Mistake(
                "the sums were divided by the totals",
                lambda: {3: Expected(right[3].value / right[4].value, 2 * right[3].bound / right[4].value)},
                "Store the sums as they are: a later kernel divides them.",
            ),
            Mistake(
                "the totals were not rescaled",
                lambda: {4: expect_parts(exponents - late)[4]},
                "Multiply `total` by the factor, too, where the origin moves.",
            ),
            Mistake(
                "the totals were rescaled twice",
                lambda: {4: expect_parts(exponents + late)[4]},
                "Multiply `total` by the factor only once where the origin moves.",
            ),
        ),
    )


def find_origins(scores):
    """Return the origin of each row after each tile; the largest score becomes it if it exceeds it by the threshold."""
    origins = [np.full(len(scores), -np.inf)]
    for k0 in range(0, scores.shape[1], KEYS):
        tile_max = scores[:, k0 : k0 + KEYS].max(1)
        origins.append(np.where(tile_max > origins[-1] + THRESHOLD, tile_max, origins[-1]))
    return np.stack(origins[1:], 1)


EXERCISE = Exercise(
    title="The missing rescale",
    task="This kernel processes some of the keys, and a later kernel merges such parts. For each query it stores the "
    "undivided sums of weight times value, the total of the weights, and the origin. A weight is exp(score - origin). "
    "The origin moves only if the largest score so far is more than 8 above it; that score is then the new origin. "
    "There are two mistakes in the code that moves the origin.",
    points=3,
    function="part_of_attention",
    make_launch=make_launch,
    sizes=((40, 70), (33, 41), (1, 3)),  # queries, keys
    random_sizes=((range(5, 70, 3), range(33, 120, 2)), ((1, 2, 33), Above(120)), (Above(60), (1, 2, 8, 31))),
)
