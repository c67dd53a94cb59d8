"""The inner loop of FlashAttention: keys and values share one tile, and sums are rescaled once per tile."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, BARRIERS, LOCAL_NUMBERS, PLAIN_FLOPS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, last_block_size, random_matrix
from labkit.ladder import Expected

QUERIES, KEYS = 32, 16  # threads per block, keys per tile


def make_launch(rng, queries, more_keys):
    keys = queries + more_keys
    Q, K = random_queries_and_keys(rng, queries, keys)
    Q[-1, 0], Q[-1, -1] = 1, 0  # whose scores rise, so that its last key counts
    V = random_matrix(rng, keys, HEAD_DIM)
    row, key = np.arange(queries)[:, None], np.arange(keys)
    visible = key <= row + more_keys
    all_scores = Q.astype(float) @ K.T
    tiles, blocks = -(-keys // KEYS), -(-queries // QUERIES)
    # sums over keys, a rescaling for each tile, 32 for the exponentials, and the errors of their exponents
    roundings = 2 * keys + 4 * tiles + 32

    def expect(visible, of_values=0.0, of_sum=0.0, is_divided=True):
        """Expect O and the log-sum-exp; weights of values and of their sum may have other exponents."""
        scores = np.where(visible, all_scores, -np.inf)
        row_max = scores.max(1, keepdims=True)
        lse = row_max[:, 0] + np.log(np.exp(scores + of_sum - row_max).sum(1))
        log_P = np.where(visible, scores - (lse[:, None] if is_divided else row_max), 0)
        P = np.where(visible, np.exp(log_P + of_values), 0)
        P_error = EPS * (roundings + 2 * np.abs(log_P) + np.abs(log_P).max(1, keepdims=True)) * P
        return {
            3: Expected((P @ V).T, (P_error @ np.abs(V) + MIN_NORMAL).T),
            4: Expected(lse, EPS * (roundings + 2 * np.abs(lse))),
        }

    right = expect(visible)
    scores = np.where(visible, all_scores, -np.inf)
    largest = scores.max(1, keepdims=True)
    # how much lower the maximum was when the key's tile came
    lower = largest - np.maximum.accumulate(scores, 1)[:, np.minimum(key // KEYS * KEYS + KEYS, keys) - 1]
    of_rest = Expected(right[4].value - largest[:, 0], right[4].bound)
    scored = blocks * QUERIES * tiles * KEYS
    return Launch(
        label=f"{queries} quer{'y' if queries == 1 else 'ies'} and {keys} key{'s' * (keys > 1)}",
        args=(Q.T.copy(), K, V, unwritten_array((HEAD_DIM, queries)), unwritten_array((queries,))),
        outputs=right,
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
            Budget(
                LOCAL_NUMBERS,
                2 * HEAD_DIM + KEYS + KEYS * HEAD_DIM // QUERIES,
                "36: a query, its sums, the scores of a tile, and a thread's part of it",
            ),
            Budget(BARRIERS, 4 * blocks * tiles, "four per tile and block"),
            Budget(PLAIN_FLOPS, scored * (4 * HEAD_DIM + 6), "2 x 8 per score, 2 x 8 per value, 6 for the weight"),
            NO_FLOAT64,
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(queries, QUERIES), "one thread per query"),),
        nan_sources="exp(score), infinite above 88, a tile of which a query sees no key (-inf - -inf), "
        "or a weight of 0 * what the tile held before",
        mistakes=(
            Mistake(
                "the sum of the weights were not rescaled",
                lambda: expect(visible, of_sum=lower),
                "Multiply the sum by the factor where the maximum moves, as `acc`.",
            ),
            Mistake(
                "the sums of values were not rescaled",
                lambda: {3: expect(visible, of_values=lower)[3]},
                "Multiply all elements of `acc` by the factor where the maximum moves.",
            ),
            Mistake(
                "each query saw all keys",
                lambda: expect(key < keys),
                "Give -inf as score to keys after the query's position.",
            ),
            Mistake(
                "the first query stood at the first key",
                lambda: expect(key <= row),
                "Compare keys with the query's position, which begins at keys - queries, not with its row.",
            ),
            Mistake(
                "O were not divided by the sum of the weights",
                lambda: {3: expect(visible, is_divided=False)[3]},
                "Divide `acc` by the sum of the weights where you store it.",
            ),
            Mistake(
                "the maximum were left out of the log-sum-exp",
                lambda: {4: of_rest},
                "Add the maximum to the logarithm of the sum.",
            ),
        ),
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
        (40, 41),  # the last tile has one key
    ),
    random_sizes=((range(33, 70, 3), range(1, 40, 2)), ((1, 2, 33), Above(64)), (Above(48), (0, 1, 15))),
)
