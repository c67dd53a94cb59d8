"""Gradients of keys and values, whose weights come from scores and log-sum-exp alone."""

import numpy as np

from labkit.checking import NO_FLOAT64, Beyond, Budget, Exercise, Launch, unwritten_array
from labkit.checking.budget import BARRIERS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, matrix
from labkit.ladder import Expected

KEYS, QUERIES = 32, 8  # threads of a block, queries of a tile
SIZES = ((41, 70), (53, 35), (1, 3), (9, 1))  # queries, keys


def make_launch(rng, queries, keys):
    Q, K = queries_and_keys(rng, queries, keys)
    V, dO = matrix(rng, keys, HEAD_DIM), matrix(rng, queries, HEAD_DIM)
    seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    scores = np.where(seen, Q.astype(float) @ K.T, -np.inf)
    lse = np.logaddexp.reduce(scores, 1).astype(np.float32)
    apart = np.where(seen, scores - np.where(seen.any(1), lse, 0)[:, None], -np.inf)
    P = np.exp(apart)
    delta = ((P @ V) * dO).sum(1).astype(np.float32)
    dP = dO.astype(float) @ V.T
    dS = P * (dP - delta[:, None])
    farthest = 4 * np.abs(np.where(seen.any(1), lse, 0))[:, None]  # a score may be added up from -lse on
    off_P = EPS * (4 + 2 * np.abs(np.where(seen, apart, 0)) + farthest) * P + MIN_NORMAL * seen
    off_dP = EPS * (HEAD_DIM + 2) * (np.abs(dO).astype(float) @ np.abs(V).T + np.abs(delta)[:, None])
    off_dS = off_P * np.abs(dP - delta[:, None]) + P * off_dP
    off_sum = EPS * (queries + 2)
    off_dK = off_dS.T @ np.abs(Q) + off_sum * np.abs(dS).T @ np.abs(Q) + MIN_NORMAL
    off_dV = off_P.T @ np.abs(dO) + off_sum * P.T @ np.abs(dO) + MIN_NORMAL
    blocks, tiles = -(-keys // KEYS), -(-queries // QUERIES)
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
        outputs={6: Expected((dS.T @ Q).T, off_dK.T), 7: Expected((P.T @ dO).T, off_dV.T)},
        grid=(blocks,),
        block=(KEYS,),
        budgets=(
            Budget(
                "global loads",
                2 * keys * HEAD_DIM + blocks * queries * (2 * HEAD_DIM + 2),
                "a key and its value once, and all that belongs to a query once for each block",
            ),
            Budget("global stores", 2 * keys * HEAD_DIM, "two gradients of 8 numbers for each key"),
            Budget(
                "load requests",
                blocks * (2 * HEAD_DIM + 6 * tiles),
                "16 of a warp for its keys and values, and 6 for each tile of queries",
            ),
            Budget(LOCAL_NUMBERS, 4 * HEAD_DIM + 8, "40: a key, a value, and the gradients of both"),
            Budget(SHARED_BYTES, 8 * QUERIES * (HEAD_DIM + 1), "those of a tile of queries"),
            Budget(BARRIERS, 2 * blocks * tiles, "two for each tile of each block"),
            NO_FLOAT64,
        ),
    )


EXERCISE = Exercise(
    id="the-log-sum-exp",
    title="The log-sum-exp of the backward",
    task="Forward has kept `lse` of each query, the logarithm of the sum of the exponentials of its scores; "
    "`delta` is the sum of O * dO of its row. From these a weight is P = exp(S - lse) at once, where S = Q K.T, and "
    "the gradients are dV = P.T dO and dK = dS.T Q, with dS = P * (dO V.T - delta). Write what a query adds to them. "
    "Of all queries number n, which is top + i in the loop, stands at place n + keys - queries, and sees key j if "
    "j <= place. Where there are more queries than keys the first ones see none: their `lse` is -inf, and they add "
    "nothing.",
    points=3,
    function="gradients_of_keys",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=((range(5, 70, 3), range(33, 120, 2)), ((1, 2, 33), Beyond(120)), (Beyond(70), (1, 2, 8, 31, 64))),
)
