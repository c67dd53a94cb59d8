"""Gradients of keys and values, with probabilities recomputed from scores and log-sum-exp."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, random_matrix
from labkit.ladder import Expected

KEYS, QUERIES = 32, 8  # threads per block, queries per tile
FAR = 250

OF_SCORES = "dS is P times the difference of dP and delta: subtract first, then multiply."
OF_VALUES = "Add P times the row of dO to dV."


def make_launch(rng, queries, keys):
    Q, K = random_queries_and_keys(rng, queries, keys)
    if 1 < queries <= keys:  # a score that query 0 does not see, and whose exponential overflows
        Q[0], K[-1, 2] = np.eye(HEAD_DIM)[2] / 2, FAR
    V, dO = random_matrix(rng, keys, HEAD_DIM), random_matrix(rng, queries, HEAD_DIM)
    visible = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    scores = np.where(visible, Q.astype(float) @ K.T, -np.inf)
    lse = np.logaddexp.reduce(scores, 1).astype(np.float32)
    log_P = np.where(visible, scores - np.where(visible.any(1), lse, 0)[:, None], -np.inf)
    P = np.exp(log_P)
    delta = ((P @ V) * dO).sum(1).astype(np.float32)
    dP = dO.astype(float) @ V.T
    dS = P * (dP - delta[:, None])
    lse_size = 4 * np.abs(np.where(visible.any(1), lse, 0))[:, None]  # a sum of products may start at -lse
    P_error = EPS * (4 + 2 * np.abs(np.where(visible, log_P, 0)) + lse_size) * P + MIN_NORMAL * visible
    dP_error = EPS * (HEAD_DIM + 2) * (np.abs(dO).astype(float) @ np.abs(V).T + np.abs(delta)[:, None])
    dS_error = P_error * np.abs(dP - delta[:, None]) + P * dP_error
    sum_error = EPS * (queries + 2)
    dK_error = dS_error.T @ np.abs(Q) + sum_error * np.abs(dS).T @ np.abs(Q) + MIN_NORMAL
    dV_error = P_error.T @ np.abs(dO) + sum_error * P.T @ np.abs(dO) + MIN_NORMAL
    blocks, tiles = -(-keys // KEYS), -(-queries // QUERIES)
    slope_error = dP_error + 8 * EPS * (np.abs(dP) + np.abs(delta)[:, None])

    def mistake(cause, cure, dS=dS, of_keys=None, of_values=(P, dO)):
        """Make a mistake in dS, or in the factors of dK and of dV."""

        def make_outputs():
            pairs = of_keys or (dS, Q), of_values
            error = P_error * (1 + np.abs(dP) + np.abs(delta)[:, None]) + slope_error * visible
            return {
                position: Expected(
                    (A.T @ B).T, (error.T @ np.abs(B) + sum_error * np.abs(A).T @ np.abs(B)).T + MIN_NORMAL
                )
                for position, (A, B) in zip((6, 7), pairs, strict=True)
            }

        return Mistake(cause, make_outputs, cure)

    return Launch(
        label=f"{queries} quer{'y' if queries == 1 else 'ies'} and {keys} key{'s' * (keys > 1)}",
        args=(
            Q,
            K.T.copy(),
            V.T.copy(),
            dO,
            lse,
            delta,
            unwritten_array((HEAD_DIM, keys)),
            unwritten_array((HEAD_DIM, keys)),
        ),
        outputs={6: Expected((dS.T @ Q).T, dK_error.T), 7: Expected((P.T @ dO).T, dV_error.T)},
        grid=(blocks,),
        block=(KEYS,),
        budgets=(
            Budget(
                "global loads",
                2 * keys * HEAD_DIM + blocks * queries * (2 * HEAD_DIM + 2),
                "a key and its value once, and all that belongs to a query once per block",
            ),
            Budget("global stores", 2 * keys * HEAD_DIM, "two gradients of 8 numbers per key"),
            Budget(
                "load requests",
                blocks * (2 * HEAD_DIM + 6 * tiles),
                "16 per warp for its keys and values, and 6 per tile of queries",
            ),
            Budget(LOCAL_NUMBERS, 4 * HEAD_DIM + 8, "40: a key, a value, and the gradients of both"),
            Budget(SHARED_BYTES, 8 * QUERIES * (HEAD_DIM + 1), "those of a tile of queries"),
            Budget(BARRIERS, 2 * blocks * tiles, "two per tile and block"),
            NO_FLOAT64,
        ),
        mistakes=(
            mistake("delta were left out", OF_SCORES, P * dP),
            mistake("delta were not multiplied by P", OF_SCORES, (P * dP - delta[:, None]) * visible),
            mistake("delta were added", OF_SCORES, P * (dP + delta[:, None])),
            mistake("dS had no factor P", OF_SCORES, (dP - delta[:, None]) * visible),
            mistake(
                "dP were made of K, not of V",
                "dP is the product of a row of dO with one of V.",
                P * (dO.astype(float) @ K.T - delta[:, None]),
            ),
            mistake("dV were made of dS, not of P", OF_VALUES, of_values=(dS, dO)),
            mistake("dK were made of P, not of dS", "Add dS times the row of Q to dK.", of_keys=(P, Q)),
            mistake("dV were made of Q, not of dO", OF_VALUES, of_values=(P, Q)),
        ),
    )


EXERCISE = Exercise(
    title="The log-sum-exp of the backward",
    task="The forward pass has kept `lse` of each query, the logarithm of the sum of the exponentials of its scores; "
    "`delta` is the sum of O * dO of its row. From `lse` each probability follows at once: P = exp(S - lse), where "
    "S = Q K.T. The gradients are dV = P.T dO and dK = dS.T Q, with dS = P * (dO V.T - delta). Write what a query "
    "adds to them. Query n, which is top + i in the loop, is at position n + keys - queries, and sees key j if j <= "
    "position. Where there are more queries than keys, the first queries see none: their `lse` is -inf, and they add "
    "nothing.",
    points=3,
    function="gradients_of_keys",
    make_launch=make_launch,
    sizes=((41, 70), (53, 35), (1, 3), (9, 1)),  # queries, keys
    random_sizes=((range(5, 70, 3), range(33, 120, 2)), ((1, 2, 33), Above(120)), (Above(70), (1, 2, 8, 31, 64))),
)
