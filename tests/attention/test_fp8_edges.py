"""Every step of attention in e4m3: the ends of rows, windows and blocks, scores far below zero, what is no number."""

from dataclasses import asdict

import numpy as np
import pytest

from labkit import attention
from labkit.attention.fp8.problem import quantised
from labkit.formats import BF16, E4M3

Problem = attention.AttentionFP8
O, LSE = Problem.ARRAYS.index("O"), Problem.ARRAYS.index("lse")


@pytest.fixture(params=attention.ladder("fp8"), ids=lambda step: step.slug)
def step(request):
    return request.param


def after(step, problem, Q=None, K=None, V=None):
    """The operands after the step, of these numbers or random ones, where it must be right."""
    problem = type(step.examples[0])(**asdict(problem))  # which allows the errors of this step
    Q, K, V = (
        np.random.default_rng(n).standard_normal(problem.unquantised.shapes["QKV"[n]]) if X is None else X
        for n, X in enumerate((Q, K, V))
    )
    before = (*quantised(Q, K, V), *problem.operands()[6:])
    found = step.simulate(*before, format=E4M3)
    assert found.errors == ()
    assert problem.is_right(before, found.operands, E4M3)
    return found.operands


EDGES = {
    "a tile of one key": Problem(1, 2, 33, 48, 129, 1),
    "one key that is none": Problem(1, 1, 140, 64, 255),
    "rows of one half that see a tile more": Problem(1, 2, 200, 64, 262, 1, True),
    "one element hidden above": Problem(1, 1, 70, 64, 132, causal=True),
    "a window that begins inside a tile": Problem(1, 1, 140, 128, 300, window=100),
    "one element hidden below": Problem(1, 1, 140, 64, 300, window=159),
    "four tiles of queries": Problem(1, 1, 400, 16, 30),
    "one key": Problem(2, 3, 1, 16, 1),
}


@pytest.mark.parametrize("problem", EDGES.values(), ids=EDGES)
def test_edges_are_right(step, problem):
    after(step, problem)


def test_scores_far_below_zero_have_weights_like_others(step):
    problem = Problem(1, 1, 70, 64, 300, causal=True)
    Q = 4 + 0.1 * np.random.default_rng(5).standard_normal((1, 1, 70, 64))
    K = -4 + 0.1 * np.random.default_rng(6).standard_normal((1, 1, 300, 64))
    assert (after(step, problem, Q, K)[LSE] < -50).all()


def test_a_scale_of_zero_makes_all_weights_alike(step):
    """However small the scales of blocks are: their product is no float32."""
    problem = Problem(1, 1, 70, 64, 140, causal=True, scale=0.0)
    Q, K = (1e-30 * np.random.default_rng(n).standard_normal((1, 1, length, 64)) for n, length in ((1, 70), (2, 140)))
    after(step, problem, Q, K)


def test_a_block_of_tiny_values_comes_behind_one_of_zeros(step):
    problem = Problem(1, 1, 40, 64, 300)
    V = np.random.default_rng(1).standard_normal((1, 1, 300, 64))
    V[:, :, :128], V[:, :, 128:] = 0, 1e-38 * V[:, :, 128:]
    assert np.isfinite(BF16.decode(after(step, problem, V=V)[O])).all()


@pytest.mark.parametrize(("name", "row"), [("Q", 30), ("Q", 270), ("K", 250)])
def test_what_is_no_number_stays_where_it_is_seen(step, name, row):
    """A query spoils its own row, also where the block takes other tiles before or behind; a key all that see it.

    Linear codes give such a score no weight, as their step says: a row of them is as one that sees nothing.
    """
    problem = Problem(1, 2, 300, 64, 300, 1, causal=True)
    before = problem.operands()
    before[Problem.ARRAYS.index(name)][0, 0, row] = E4M3.encode(np.nan)
    with np.errstate(invalid="ignore"):
        found = step.simulate(*before, format=E4M3).operands
    numbers, wanted = BF16.decode(found[O]), np.zeros((1, 2, 300), bool)
    wanted[:, : 1 if name == "Q" else 2, row : row + 1 if name == "Q" else 300] = True
    if step.slug == "linear_codes":
        blind = np.isneginf(found[LSE])
        assert np.array_equal(blind, wanted & (name == "Q")) and not numbers[blind].any()
        assert np.isfinite(numbers).all() and not np.isnan(found[LSE]).any()
        return
    assert np.array_equal(np.isnan(found[LSE]), wanted)
    assert np.array_equal(np.isnan(numbers).any(-1), wanted) and np.array_equal(np.isnan(numbers).all(-1), wanted)
