"""Rows whose products float32 holds exactly, for exercises on attention: what is off is the exercise's alone."""

import numpy as np
from jaxtyping import Float32

NUMBERS = 8  # of a row
FAR = 100, 9  # a row's scores: a multiple of the first from zero, up to so many of it


def queries_and_keys(
    rng: np.random.Generator, queries: int, keys: int
) -> tuple[Float32[np.ndarray, "queries 8"], Float32[np.ndarray, "keys 8"]]:
    """Halves, whose products add up exactly; scores rise with the keys, fall or stay, and lie far from zero."""
    Q, K = rng.integers(-2, 3, (queries, NUMBERS)) / 2, rng.integers(-3, 4, (keys, NUMBERS)) / 2
    Q[:, 0], K[:, 0] = rng.integers(-2, 4, queries), np.arange(keys) * rng.integers(1, 4) // 4
    Q[:, 1], K[:, 1] = rng.integers(-FAR[1], FAR[1] + 1, queries), FAR[0]
    return Q.astype(np.float32), K.astype(np.float32)
