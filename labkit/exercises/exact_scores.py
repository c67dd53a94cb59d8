"""Queries and keys whose scores float32 holds exactly, so that an error comes from the exercise's own steps."""

import numpy as np
from jaxtyping import Float32

HEAD_DIM = 8
SCORE_STEP, MAX_STEPS = 100, 9  # a query's scores are far from zero, by a multiple of the step
FAR_STEPS, TIMES_FARTHER, TIMES_FARTHEST = (
    8,
    5,
    11,
)  # from 8 steps on they are 5 times as far, at the least step 11: thousands
PEAK, PEAKED_SHARE, PEAK_KEYS = (
    12.5,
    0.25,
    32,
)  # score of one of the first keys; share of queries for which all others have 0


def random_queries_and_keys(
    rng: np.random.Generator, queries: int, keys: int
) -> tuple[Float32[np.ndarray, "queries 8"], Float32[np.ndarray, "keys 8"]]:
    """Draw halves, whose products add up exactly; a query's scores rise with the keys, fall or stay.

    Some queries have a score that is larger than all others, whose weights are small, and matter together.
    """
    Q, K = rng.integers(-2, 3, (queries, HEAD_DIM)) / 2, rng.integers(-3, 4, (keys, HEAD_DIM)) / 2
    Q[:, 0], K[:, 0] = rng.integers(-2, 4, queries), np.arange(keys) * rng.integers(1, 4) // 4
    steps = rng.integers(-MAX_STEPS, MAX_STEPS + 1, queries)
    far = np.where(steps > -MAX_STEPS, TIMES_FARTHER, TIMES_FARTHEST) * steps
    Q[:, 1], K[:, 1] = np.where(np.abs(steps) < FAR_STEPS, steps, far), SCORE_STEP
    Q[rng.random(queries) < PEAKED_SHARE] = np.eye(HEAD_DIM)[-1] * PEAK
    K[:, -1] = np.arange(keys) == rng.integers(max(1, min(keys, PEAK_KEYS)))
    return Q.astype(np.float32), K.astype(np.float32)
