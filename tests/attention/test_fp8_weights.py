"""Weights in e4m3 as linear functions of scores: how far they are off, and where they end."""

import numpy as np
import pytest

from labkit import cuda, simulate
from labkit.attention.fp8.problem import OfLinearCodes
from labkit.attention.fp8.weights import NONE, STEEP, encode, gather, move, tame
from labkit.formats import E4M3

SCORES, WORDS, ROWS = 64, 16, 16  # of a thread, and of a warp


@cuda.jit
def codes_of_rows(X, factor, codes):
    S = cuda.local.array(SCORES, np.float32)
    P = cuda.local.array(WORDS, np.uint32)
    lane = cuda.threadIdx.x
    for n in range(SCORES):
        S[n] = X[lane, n]
    tops = cuda.local.array(2, np.float32)
    tame(S, tops, factor)
    for r in range(2):
        encode(S, r, NONE, tops[r], factor)
    gather(P, S)
    for n in range(WORDS):
        codes[lane, n] = P[n]


@cuda.jit
def moves_of_rows(X, factor, before, after):
    S = cuda.local.array(SCORES, np.float32)
    tops = cuda.local.array(2, np.float32)
    lane = cuda.threadIdx.x
    for n in range(SCORES):
        S[n] = X[lane, n]
    tame(S, tops, factor)
    for r in range(2):
        after[lane, r, 0], after[lane, r, 1], _ = move(S, r, before[lane, r], tops[r], factor)
    for n in range(SCORES):
        X[lane, n] = S[n]


def of_threads_of(rows):
    return rows.reshape(2, 8, 4, 16, 2).transpose(1, 2, 3, 0, 4).reshape(32, SCORES).astype(np.float32)


def codes(rows, factor=1.0):
    """Of 16 rows of 128 scores, of which a factor makes exponents of 2."""
    of_threads = of_threads_of(rows)
    trace = simulate(codes_of_rows, 1, 32, of_threads, np.float32(factor), np.zeros((32, WORDS), np.uint32))
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
    assert 0.07 < np.abs(off).max() <= OfLinearCodes.weights.off and abs(off.mean()) < 5e-3
    assert np.abs(found - right)[~normal].max() <= OfLinearCodes.weights.lost * 2**8
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


@pytest.mark.parametrize("factor", [0.2, 0.26, 5.0, 9.0, 1e3, 1e8, 1e30])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_highest_score_keeps_its_weight_however_large_scores_are(factor, sign):
    """With and without a rounding between product and difference: a GPU has none, and NumPy has one."""
    scores = sign * 2.0**24 * (1 + np.random.default_rng(0).random((ROWS, 128))).astype(np.float32)
    scores[:, 100:] = -np.inf
    found = codes(scores, factor)
    assert (E4M3.decode(found.max(1)) >= 1).all() and not found[:, 100:].any()
    given, factor = of_threads_of(scores), np.float32(factor)
    nothing = np.full((32, 2), NONE)
    trace = simulate(moves_of_rows, 1, 32, given, factor, nothing, np.zeros((32, 2, 2), np.float32))
    S, after = (trace.outputs[n].astype(np.float64) for n in (0, 3))
    high = S.reshape(8, 4, 16, 2, 2).max((1, 2, 4))  # of rows
    exponents = high * np.float64(factor) - after[::4, :, 1]
    assert (exponents > -1).all() and (exponents < 9).all()
    wanted = given.reshape(8, 4, 16, 2, 2).max((1, 2, 4)) * np.float64(factor)
    assert np.allclose(after[::4, :, 0], wanted - 8, rtol=3e-7)


def test_rows_that_see_nothing_of_a_tile_keep_their_origin_however_large_it_is():
    scores = np.full((ROWS, 128), -np.inf)
    before = np.full((32, 2), 1e9, np.float32)
    given = of_threads_of(scores), np.float32(100), before, np.zeros((32, 2, 2), np.float32)
    S, _, _, after = simulate(moves_of_rows, 1, 32, *given).outputs
    assert (after[..., 0] == 1e9).all() and np.isneginf(S).all() and np.isfinite(after[..., 1]).all()


def test_steep_factors_are_those_of_which_scores_have_no_fraction():
    """Of the largest score that there is: 128 products of the largest codes."""
    assert STEEP * 128 * 448**2 < 2**23
