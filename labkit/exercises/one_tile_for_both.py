"""The inner loop of FlashAttention: keys and values share one tile, and sums are rescaled once per tile."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, BARRIERS, LOCAL_NUMBERS, PLAIN_FLOPS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, last_block_size, random_matrix
from labkit.ladder import Expected

QUERIES, KEYS = 32, 16  # threads per block, keys per tile


def make_launch(rng, queries, more_keys):
    keys = queries + more_keys
    Q, K = random_queries_and_keys(rng, queries, keys)
    V = random_matrix(rng, keys, HEAD_DIM)
    visible = np.arange(keys) <= np.arange(queries)[:, None] + more_keys
    scores = np.where(visible, Q.astype(float) @ K.T, -np.inf)
    lse = np.logaddexp.reduce(scores, 1)
    log_P = np.where(visible, scores - lse[:, None], 0)
    P = np.where(visible, np.exp(log_P), 0)
    tiles, blocks = -(-keys // KEYS), -(-queries // QUERIES)
    # sums over keys, a rescaling for each tile, 32 for the exponentials, and the errors of their exponents
    roundings = 2 * keys + 4 * tiles + 32
    P_error = EPS * (roundings + 2 * np.abs(log_P) + np.abs(log_P).max(1, keepdims=True)) * P
    scored = blocks * QUERIES * tiles * KEYS
    return Launch(
        label=f"{queries} quer{'y' if queries == 1 else 'ies'} and {keys} key{'s' * (keys > 1)}",
        args=(Q.T.copy(), K, V, unwritten_array((HEAD_DIM, queries)), unwritten_array((queries,))),
        outputs={
            3: Expected((P @ V).T, (P_error @ np.abs(V) + MIN_NORMAL).T),
            4: Expected(lse, EPS * (roundings + 2 * np.abs(lse))),
        },
        grid=(blocks,),
        block=(QUERIES,),
        budgets=(
            Budget(
                "global loads",
                queries * HEAD_DIM + 2 * blocks * keys * HEAD_DIM,
                "a query once, and each key and value once per block",
                {"Q": queries * HEAD_DIM, "K": blocks * keys * HEAD_DIM, "V": blocks * keys * HEAD_DIM},
            ),
            Budget("global stores", queries * (HEAD_DIM + 1), "8 numbers and a log-sum-exp per query"),
            Budget(SHARED_BYTES, 4 * KEYS * HEAD_DIM, "those of one tile, for K and then for V"),
            Budget(LOCAL_NUMBERS, 2 * HEAD_DIM + KEYS, "32: a query, its sums, and the scores of a tile"),
            Budget(BARRIERS, 4 * blocks * tiles, "four per tile and block"),
            Budget(PLAIN_FLOPS, scored * (4 * HEAD_DIM + 6), "2 x 8 per score, 2 x 8 per value, 6 for the weight"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(queries, QUERIES), "one thread per query"),),
    )


EXERCISE = Exercise(
    title="One tile for both",
    task="Write FlashAttention's loop over the keys with a single tile in shared memory, which holds keys first and "
    "then their values. Rescale once per tile.",
    points=5,
    function="flash",
    make_launch=make_launch,
    sizes=(  # queries, keys before the first query's; first one tile, all seen
        (1, 15),
        (32, 0),
        (7, 4),
        (32, 160),
        (40, 37),
    ),
    random_sizes=((range(33, 70, 3), range(1, 40, 2)), ((1, 2, 33), Above(64)), (Above(48), (0, 1, 15))),
)
