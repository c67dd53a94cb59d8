"""What a rotation of Q and K does to outliers, and to the error of attention in e4m3.

A vector is rotated by random signs and log2(head_dim) stages of the Walsh-Hadamard transform. Each stage is orthogonal:
it leaves every q . k as it was, and spreads an outlier over twice as many elements. (Shah and others, FlashAttention-3,
2024, section 3.3, "incoherent processing"; Chee and others, QuIP, 2023.)
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from labkit.attention.fp8.problem import BLOCK, decode_blocks, encode_blocks
from labkit.formats import E4M3

OUTLIER_SHARE, OUTLIER_SIZE = 1e-3, 10.0  # of N(0, 1) + N(0, 100) * Bernoulli(0.001) (FlashAttention-3, section 4.3)
GREATEST_WEIGHT = 256.0  # of a row, before weights are rounded to e4m3, as in the kernels
SCORES = "all scores", "each query's largest score"
SEEDS = 2  # of random operands, whose errors are averaged


class RotationStudy(NamedTuple):
    """A row of K, and errors of O, after each stage of the rotation; the arguments of `labkit.views.rotation`.

    Attributes
    ----------
    row, rounded
        The row of K whose rounding has the largest error, exact and as e4m3 with one scale for all of K.
    score_errors
        Root mean square errors of all scores, and of the largest score of each query, with one scale per tensor.
    errors
        Root mean square errors of O, by the scales of the quantisation.
    """

    row: Float64[np.ndarray, "stages D"]
    rounded: Float64[np.ndarray, "stages D"]
    score_errors: dict[str, list[float]]
    errors: dict[str, list[float]]


def rotation_study(length: int = 1024, head_dim: int = 128) -> RotationStudy:
    """Compute attention from rounded operands in float64, after each stage of the rotation."""
    stages = head_dim.bit_length()  # 0, 1, ..., log2(head_dim)
    blocks = {"one scale per tensor": length, f"a scale per {BLOCK} rows": BLOCK}
    squares, score_squares = ({name: np.zeros(stages) for name in of} for of in (blocks, SCORES))
    for seed in range(SEEDS):
        Q, K, V, signs = draw_operands(seed, length, head_dim)
        exact, scores = _attend(Q, K, V), Q @ K.T
        for stage in range(stages):
            q, k = (rotate(X, signs, stage) for X in (Q, K))
            for name, block in blocks.items():
                O = _attend(*(round_to_e4m3(X, block) for X in (q, k, V)), rounds_weights=True)
                squares[name][stage] += np.mean((O - exact) ** 2) / SEEDS
            off = (round_to_e4m3(q, length) @ round_to_e4m3(k, length).T - scores) / head_dim**0.5
            of_largest = off[np.arange(length), scores.argmax(1)]
            for name, found in zip(SCORES, (off, of_largest), strict=True):
                score_squares[name][stage] += np.mean(found**2) / SEEDS
    _, K, _, signs = draw_operands(0, length, head_dim)
    row = np.argmax(np.abs(K - round_to_e4m3(K, length)).max(1))
    rotated = [rotate(K, signs, stage) for stage in range(stages)]
    rows, rounded = (np.array([X[row] for X in of]) for of in (rotated, [round_to_e4m3(X, length) for X in rotated]))
    of_scores, errors = (
        {name: np.sqrt(total).tolist() for name, total in of.items()} for of in (score_squares, squares)
    )
    return RotationStudy(rows, rounded, of_scores, errors)


def cache_errors(queries: int = 64, keys: int = 1024, head_dim: int = 128) -> dict[str, dict[str, float]]:
    """Compute root mean square errors of O for caches of 8 bits with a scale per row, by format and kind of numbers."""
    squares: dict[str, dict[str, float]] = {"e4m3": {}, "int8": {}}
    for kind, size, stages in (
        ("without outliers", 0.0, 0),
        ("with outliers", OUTLIER_SIZE, 0),
        ("with outliers, rotated", OUTLIER_SIZE, head_dim.bit_length() - 1),
    ):
        for seed in range(SEEDS):
            Q, K, V, signs = draw_operands(seed, keys, head_dim, size)
            Q, K, V = (rotate(X, signs, stages) for X in (Q[:queries], K, V))  # of V, which rotates O
            exact = _attend(Q, K, V)
            for name, rounded in (("e4m3", lambda X: round_to_e4m3(X, 1)), ("int8", round_to_int8)):
                square = float(np.mean((_attend(Q, rounded(K), rounded(V)) - exact) ** 2)) / SEEDS
                squares[name][kind] = squares[name].get(kind, 0.0) + square
    return {name: {kind: square**0.5 for kind, square in of.items()} for name, of in squares.items()}


def draw_operands(seed: int, length: int, head_dim: int, outlier_size: float = OUTLIER_SIZE) -> tuple:
    """Draw Q, K and V with outliers, and random signs."""
    rng = np.random.default_rng(seed)
    shape = length, head_dim
    outliers = (rng.standard_normal(shape) * (rng.random(shape) < OUTLIER_SHARE) for _ in range(3))
    return *(rng.standard_normal(shape) + outlier_size * X for X in outliers), rng.choice([-1.0, 1.0], head_dim)


def rotate(X: Float[np.ndarray, "S D"], signs: Float[np.ndarray, " D"], stages: int) -> Float64[np.ndarray, "S D"]:
    """Rotate rows by so many stages of the transform; none leaves them as they are."""
    if not stages:
        return X
    X = X * signs
    for stage in range(stages):
        pairs = X.reshape(len(X), -1, 2, 2**stage)
        X = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(X.shape) / 2**0.5
    return X


def round_to_e4m3(X: Float[np.ndarray, "S D"], block: int) -> Float64[np.ndarray, "S D"]:
    """Round rows to e4m3, with a scale per `block` of them."""
    return decode_blocks(*encode_blocks(X[None, None], block), np.arange(len(X)), block)[0, 0]


def round_to_int8(X: Float[np.ndarray, "S D"]) -> Float64[np.ndarray, "S D"]:
    """Round rows to int8, with a scale each."""
    scales = np.abs(X).max(1, keepdims=True) / 127
    return np.round(X / scales) * scales


def _attend(Q, K, V, rounds_weights: bool = False):
    S = Q @ K.T / np.sqrt(Q.shape[1])
    P = np.exp(S - S.max(1, keepdims=True))
    row_sum = P.sum(1, keepdims=True)
    if rounds_weights:
        P = E4M3.decode(E4M3.encode((GREATEST_WEIGHT * P).astype(np.float32))) / GREATEST_WEIGHT
    return P @ V / row_sum
