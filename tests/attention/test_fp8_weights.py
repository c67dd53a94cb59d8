"""Weights in e4m3 as linear functions of scores: how far they are off, and where they end."""

import numpy as np
import pytest

from labkit import cuda, simulate
from labkit.attention.fp8.problem import LinearCodes
from labkit.attention.fp8.weights import MASKED, pack_codes, scores_to_codes
from labkit.formats import E4M3

SCORES, WORDS, ROWS = 64, 16, 16  # of a thread, and of a warp


@cuda.jit
def codes_of_rows(X, factor, codes):
    S = cuda.local.array(SCORES, np.float32)
    P = cuda.local.array(WORDS, np.uint32)
    lane = cuda.threadIdx.x
    for n in range(SCORES):
        S[n] = X[lane, n]
    for r in range(2):
        scores_to_codes(S, r, MASKED, factor)
    pack_codes(P, S)
    for n in range(WORDS):
        codes[lane, n] = P[n]


def codes(rows, factor=1.0):
    """Of 16 rows of 128 scores, of which a factor makes exponents of 2."""
    of_threads = rows.reshape(2, 8, 4, 16, 2).transpose(1, 2, 3, 0, 4).reshape(32, SCORES)
    trace = simulate(
        codes_of_rows, 1, 32, of_threads.astype(np.float32), np.float32(factor), np.zeros((32, WORDS), np.uint32)
    )
    assert trace.errors == ()
    found = trace.outputs[2].view(np.uint8).reshape(8, 4, 8, 2, 2, 2)  # of 16 columns: row, half, neighbour
    return found.transpose(3, 0, 1, 2, 4, 5).reshape(rows.shape)


def test_weights_are_off_by_what_the_problem_allows_and_right_in_the_mean():
    exponents = np.random.default_rng(0).uniform(-20, 0, (ROWS, 128)).astype(np.float32)
    exponents[:, 5] = 0
    right = np.exp2(8.0 + exponents)
    found = E4M3.decode(codes(exponents))
    normal = right > 2.0**-6
    off = found[normal] / right[normal] - 1
    assert 0.07 < np.abs(off).max() <= LinearCodes.weights.error and abs(off.mean()) < 5e-3
    assert np.abs(found - right)[~normal].max() <= LinearCodes.weights.lost * 2**8
    assert (found[:, 5] == 2**8).all()


@pytest.mark.parametrize("factor", [0.9, 1.1, 1.3, 1.7])
def test_no_code_is_that_of_nan_however_large_scores_are(factor):
    """Where neighbouring numbers of float32 are many exponents apart."""
    scores = 1e8 * (1 - np.random.default_rng(0).random((ROWS, 128)) * 1e-6)
    assert codes(scores, factor).max() <= 126


def test_what_is_not_seen_has_no_weight():
    exponents = np.zeros((ROWS, 128))
    exponents[:, 3::2], exponents[1], exponents[2, 0] = -np.inf, -np.inf, np.nan
    found = codes(exponents)
    assert not found[:, 3::2].any() and not found[1].any() and found[2, 0] == 0
    assert (E4M3.decode(found[3, [0, 1, 2, 4]]) == 2**8).all()
