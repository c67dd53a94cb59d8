"""Attention to the first and the latest keys, which skips the tiles in between."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, random_matrix
from labkit.ladder import Expected
from labkit.table import count_text

QUERIES, KEYS = 32, 8  # threads per block, keys per tile


def make_launch(rng, queries, keys, sinks, window):
    keys = max(queries, keys)
    Q, K = random_queries_and_keys(rng, queries, keys)
    # a block's first and last query: their scores stay small, so that no key's weight is 0
    Q[::QUERIES, 0] = Q[QUERIES - 1 :: QUERIES, 0] = 0
    Q[-1, 0] = Q[-1, -1] = 0
    V = random_matrix(rng, keys, HEAD_DIM)
    position, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)
    allowed = (j <= position) & ((j < sinks) | (j > position - window))

    def expect_O(allowed):
        scores = np.where(allowed, Q.astype(float) @ K.T, -np.inf)
        distances = scores.max(1, keepdims=True) - scores
        weights = np.exp(-distances)
        weights /= weights.sum(1, keepdims=True)
        # eps for each term of two sums over keys, 32 for exponential, rescaling and division, and the exponent's error
        error = EPS * (2 * keys + 32 + 2 * np.where(allowed, distances, 0)) * weights
        O, V_size = weights @ V, np.abs(V.astype(float))
        error = error @ V_size + error.sum(1, keepdims=True) * np.abs(O) + MIN_NORMAL * V_size.sum(0)
        return {3: Expected(O.T, error.T)}

    first = position - np.arange(queries)[:, None] % QUERIES  # of the block's queries
    left = j // KEYS * KEYS
    in_window = left + KEYS - 1 > first - window
    needed = find_needed_tiles(allowed)
    blocks, count = len(needed), int(needed.sum())
    tile_rows = int((needed * np.minimum(KEYS, keys - KEYS * np.arange(needed.shape[1]))).sum())  # of K, and of V
    return Launch(
        label=f"{count_text(queries, 'query', 'queries')}, {count_text(keys, 'key')}, {count_text(sinks, 'sink')}, "
        f"a window of {window}",
        args=(Q.T.copy(), K, V, unwritten_array((HEAD_DIM, queries)), np.int32(sinks), np.int32(window)),
        outputs=expect_O(allowed),
        grid=(blocks,),
        block=(QUERIES,),
        budgets=(
            Budget(
                "global loads",
                HEAD_DIM * (queries + 2 * tile_rows),
                f"queries once, and the keys and values of {count_text(count, 'tile')} "
                "in which a query of the block may look",
            ),
            Budget("global stores", HEAD_DIM * queries, "each element of O once"),
            Budget("load requests", HEAD_DIM * blocks + 4 * count, "8 per warp for its queries, and 4 per tile"),
            Budget("shared loads", 2 * count * KEYS * HEAD_DIM * QUERIES, "2 x 8 x 8 per thread and tile"),
            Budget(BARRIERS, 2 * count, "two per tile"),
            Budget(LOCAL_NUMBERS, 2 * HEAD_DIM + KEYS, "24: a query and its sums"),  # and the scores of a tile
            Budget(SHARED_BYTES, 8 * KEYS * HEAD_DIM, "those of a tile of K and one of V"),
            NO_FLOAT64,
        ),
        mistakes=(
            Mistake(
                "no tile of sinks were loaded unless it is in the window",
                lambda: expect_O(allowed & in_window),
                "Skip a tile only if it has no sink: compare its first key with `sinks`.",
            ),
            Mistake(
                "only the first tile had sinks",
                lambda: expect_O(allowed & (in_window | (left < KEYS))),
                "Compare the first key of a tile with `sinks`: more than one tile may hold sinks.",
            ),
            Mistake(
                "a tile of which one query sees one key were skipped",
                lambda: expect_O(allowed & ((left < sinks) | (left + KEYS - 1 > first - window + 1))),
                "Look at the last key of the tile that the block's first query sees: the comparison is off by one.",
            ),
        ),
    )


def find_needed_tiles(allowed):
    """Mark, per block, the tiles of keys of which one of its queries sees a key."""
    queries, keys = allowed.shape
    needed = np.zeros((-(-queries // QUERIES), -(-keys // KEYS)), bool)
    row, column = np.nonzero(allowed)
    needed[row // QUERIES, column // KEYS] = True
    return needed


EXERCISE = Exercise(
    title="Tiles to skip",
    task="A streaming model keeps two kinds of keys: the first few, its **sinks**, and those of a window that ends at "
    "the query. A query at position p sees key j if j <= p, and either j < sinks or j > p - window. This kernel loads "
    "every tile. Let each block load a tile only if at least one query of the block sees a key of that tile.",
    points=3,
    function="with_sinks",
    make_launch=make_launch,
    sizes=(  # queries, keys, sinks, window
        (70, 97, 9, 13),
        (64, 64, 8, 17),
        (5, 120, 3, 1),
        (40, 60, 0, 5),
        (1, 1, 0, 1),
        (40, 250, 3, 150),
    ),
    random_sizes=(
        (range(33, 100, 3), range(60, 160, 7), range(30), range(1, 50)),
        ((1, 2, 33), Above(130), (0, 1, 8, 16, 31), (1, 8, 9, 16)),
        (Above(80), Above(100), (0, 7, 24), Above(20)),
    ),
)
