"""Partial attention of the few queries of a draft: each thread has one key, and queries pass by."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, last_block_size, random_matrix
from labkit.ladder import Expected

KEYS = 32  # per part, one per lane
FINITE = (
    -2e38,
    1.9e38,
)  # in place of a log-sum-exp of -inf: the middle of what scores of unseen keys are set to, and how far


def make_launch(rng, keys, queries):
    Q, K = random_queries_and_keys(rng, queries, keys)
    K[:, 0] *= 4  # a part's scores are far apart, too
    K[-1] *= 8  # most of all that of the key which only the last query sees
    V, parts = random_matrix(rng, keys, HEAD_DIM), -(-keys // KEYS)
    visible = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    scores = np.full((queries, parts * KEYS), -np.inf)
    scores[:, :keys] = np.where(visible, Q.astype(float) @ K.T, -np.inf)
    scores = scores.reshape(queries, parts, KEYS).swapaxes(0, 1)
    values = np.zeros((parts, KEYS, HEAD_DIM))
    values.reshape(-1, HEAD_DIM)[:keys] = V
    lse = np.logaddexp.reduce(scores, 2)
    has_keys = lse > -np.inf
    log_P = np.where(np.isfinite(scores), scores - np.where(has_keys, lse, 0)[:, :, None], -np.inf)
    P = np.exp(log_P)
    lse_error = EPS * (16 + 2 * np.abs(np.where(has_keys, lse, 0)))
    distances = np.abs(np.where(np.isfinite(log_P), log_P, 0))
    P_error = EPS * (32 + 2 * distances + distances.max(2, keepdims=True)) * P
    part_max = np.where(has_keys, scores.max(2), 0)
    row_sum = np.exp(lse - part_max)
    O_error = P_error @ np.abs(values) + MIN_NORMAL
    right, alike = (P @ values, O_error), np.broadcast_to(EPS * 64, (parts, 1, HEAD_DIM))

    def expect_lse(value):
        return {4: Expected(np.where(has_keys, value, -np.inf), lse_error)}

    return Launch(
        label=f"{queries} quer{'y' if queries == 1 else 'ies'} and {keys} key{'s' * (keys > 1)}",
        args=(
            Q,
            K.T.copy(),
            V.T.copy(),
            unwritten_array((parts, queries, HEAD_DIM)),
            unwritten_array((parts, queries)),
        ),
        outputs={3: Expected(P @ values, P_error @ np.abs(values) + MIN_NORMAL), 4: Expected(lse, lse_error)},
        grid=(parts,),
        block=(KEYS,),
        budgets=(
            Budget(
                "global loads",
                2 * keys * HEAD_DIM + parts * KEYS * queries * HEAD_DIM,
                "a key and its value once for all queries, and each query once per thread",
                {"K": keys * HEAD_DIM, "V": keys * HEAD_DIM},
            ),
            Budget(
                "load requests",
                parts * HEAD_DIM * (2 + queries),
                "16 per warp for its keys and values, and 8 per query",
            ),
            Budget("global stores", parts * queries * (HEAD_DIM + 1), "8 numbers and a log-sum-exp per query and part"),
            Budget(LOCAL_NUMBERS, 3 * HEAD_DIM, "24: a key, a value and a query; there may be any number of queries"),
            Budget(SHARED_BYTES, 0, "a warp shares by shuffles"),
            NO_FLOAT64,
        ),
        nan_sources="exp(score), infinite above 88, or a query that sees no key of its part (-inf - -inf, 0 / 0)",
        mistakes=(
            Mistake(
                "O were not divided by the sum of the weights",
                lambda: {3: Expected(*(array * row_sum[:, :, None] for array in (P @ values, 2 * O_error)))},
                "Divide O by the sum over all lanes where you store it.",
            ),
            Mistake(
                "the maximum were the log-sum-exp",
                lambda: expect_lse(part_max),
                "Add the logarithm of the sum to the maximum.",
            ),
            Mistake(
                "the maximum were left out of the log-sum-exp",
                lambda: expect_lse(lse - part_max),
                "Add the part's maximum to the logarithm of the sum.",
            ),
            Mistake(
                "a query that sees no key of a part weighed all of its keys alike",
                lambda: {
                    3: Expected(*np.where(has_keys[:, :, None], right, (values.mean(1, keepdims=True), alike))),
                    4: Expected(*np.where(has_keys, (lse, lse_error), np.array(FINITE)[:, None, None])),
                },
                "There its scores and their maximum are one finite number, and exp(0) is 1. Give unseen keys -inf, and "
                "where the maximum is -inf, store O = 0 and a log-sum-exp of -inf.",
            ),
        ),
        duties=(Duty(ACTIVE_THREADS, last_block_size(keys, KEYS), "one thread per key"),),
    )


EXERCISE = Exercise(
    title="Verify a draft",
    task="A small model has guessed the next few tokens, and the large model checks all of them at once: each has a "
    "query, and its key and value are already at the end of the cache. Query i is at position i + keys - queries, "
    "and sees key j if j <= position. Each block has a part of 32 keys, and writes, per query, O and log-sum-exp of "
    "this part, as a split does. The keys and values are read once for all queries. A query that sees no key of a part "
    "has O = 0 and a log-sum-exp of -inf there.",
    points=4,
    function="verify",
    make_launch=make_launch,
    sizes=((70, 5), (96, 3), (65, 4), (40, 37), (1, 1)),  # keys, queries
    random_sizes=((range(33, 120, 3), range(2, 9)), (Above(96), (1, 2, 5)), ((1, 2, 33, 64), Above(37))),
)
