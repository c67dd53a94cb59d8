"""Errors of attention with scores stored in memory and with scores kept on chip, by the spread of the scores."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from labkit.attention.problem import AttentionForward
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import ladder

QUERIES, KEYS, HEAD_DIM = 48, 64, 64
RUNS = ("standard", FP32), ("q_outer", FP32), ("mma", FP16), ("mma", BF16)


class ErrorStudy(NamedTuple):
    """Relative errors of O against float64; the arguments of `labkit.views.attention_errors`.

    Attributes
    ----------
    spreads
        Standard deviations of the scores.
    weights
        Probabilities of one query at each spread.
    stored, fused
        Errors at each spread, by format: with scores in memory, and on chip.
    """

    spreads: Sequence[float]
    weights: Float64[np.ndarray, "spreads keys"]
    stored: dict[str, list[float]]
    fused: dict[str, list[float]]


def error_study(spreads: Sequence[float]) -> ErrorStudy:
    """Run attention in the simulator at each spread of the scores, and compare O with float64.

    Fused: `q_outer` in float32, `mma` in 16 bits. Stored: `standard` in float32. No step stores scores in 16 bits, so
    there `emulate` rounds as such kernels would.
    """
    steps = {step.slug: step for step in ladder("attention", "forward")}
    stored, fused = ({str(format): [] for format in (BF16, FP16, FP32)} for _ in range(2))
    weights = []
    for spread in spreads:
        problem = AttentionForward(1, 1, QUERIES, HEAD_DIM, keys=KEYS, scale=spread / HEAD_DIM**0.5)
        for slug, format in RUNS:
            operands = problem.operands(format)
            q, k, v = (format.decode(X[0, 0]).astype(float) for X in operands[:3])
            powers = np.exp(problem.factor * (q @ k.T))
            right = powers @ v / powers.sum(1, keepdims=True)
            O = format.decode(steps[slug].simulate(*operands, format=format).operands[3][0, 0])
            (stored if slug == "standard" else fused)[str(format)].append(_relative_error(O, right))
            if slug == "mma":
                O = emulate(q, k, v, problem.factor, format, stores_scores=True)
                stored[str(format)].append(_relative_error(O, right))
        weights.append(powers[0] / powers[0].sum())
    return ErrorStudy(spreads, np.array(weights), stored, fused)


def emulate(q, k, v, scale: float, format: Format, stores_scores: bool) -> Float64[np.ndarray, "queries head_dim"]:
    """Compute O with the roundings of a format: of weights and O, and of the scores if they are stored."""

    def rounded(X):
        return format.decode(format.encode(X))

    scores = rounded(scale * (q @ k.T)) if stores_scores else scale * (q @ k.T)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    row_sum = weights.sum(1, keepdims=True)
    return rounded(rounded(weights / row_sum) @ v) if stores_scores else rounded(rounded(weights) @ v / row_sum)


def _relative_error(O, right) -> float:
    return float(np.linalg.norm(O - right) / np.linalg.norm(right))
