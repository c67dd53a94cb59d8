"""Every step of attention in e4m3: the ends of rows, windows and blocks, scores far below zero, what is no number."""

from dataclasses import asdict

import numpy as np
import pytest

from labkit import attention
from labkit.attention.fp8.problem import quantise_blocks
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
    before = (*quantise_blocks(Q, K, V), *problem.operands()[6:])
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
@pytest.mark.sample(4)
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


def in_blocks(length, *sizes):
    """Random numbers, of which blocks have sizes."""
    X = np.random.default_rng(1).standard_normal((1, 1, length, 64))
    return X * np.repeat(sizes, 128)[None, None, :length, None]


FAR_APART = {
    "far smaller": (1, 1e-35, 1e-35),
    "smaller again and again": (1e36, 1, 1e-36),
    "behind tiny ones": (1e-30, 1e8, 1e-30),
    "zeros behind large ones": (1e36, 0, 0),
    "a little larger than the least": (1, 1e-19, 1e-20),
}


@pytest.mark.parametrize("sizes", FAR_APART.values(), ids=FAR_APART)
@pytest.mark.sample(5)
def test_scales_of_values_may_lie_far_apart(step, sizes):
    problem = Problem(1, 1, 40, 64, 260)
    assert np.isfinite(BF16.decode(after(step, problem, V=in_blocks(260, *sizes))[O])).all()


def test_values_beside_far_larger_ones_are_off_by_less_than_those_tell(step):
    """Of the first queries some see large values, and the others see tiny ones alone."""
    problem, V = Problem(1, 1, 140, 64, 260, causal=True, window=20), in_blocks(260, 1e20, 1e-20, 1e-20)
    before = (*quantise_blocks(in_blocks(140, 1, 1), in_blocks(260, 1, 1, 1), V), *problem.operands()[6:])
    found = BF16.decode(step.simulate(*before, format=E4M3).operands[O])
    assert (np.abs(found)[:, :, 30:] < 2.0**-50 * np.abs(V).max()).all()


def test_the_mean_of_values_may_be_large_where_their_sum_is_no_float32(step):
    found = after(step, Problem(1, 1, 40, 64, 260), V=3e38 * np.sign(in_blocks(260, 1, 1, 1)))
    assert np.isfinite(BF16.decode(found[O])).all()


@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.sample(4)
def test_scores_may_be_large(step, size, turns):
    """All the weight is the highest one's, which bounds of the problem do not say where errors are so large as well."""
    problem = Problem(1, 1, 70, 64, 260, scale=-size if turns else None)
    Q = in_blocks(70, 1 if turns else 10 * size)
    before = (*quantise_blocks(Q, in_blocks(260, 1, 0.1, 1), in_blocks(260, 1, 1, 1)), *problem.operands()[6:])
    found, expected = step.simulate(*before, format=E4M3), problem.expected(before)
    assert found.errors == ()
    assert np.allclose(found.operands[LSE], expected[LSE].value, rtol=2e-3)
    assert np.allclose(BF16.decode(found.operands[O]), expected[O].value, rtol=0.01, atol=0.01)


def test_scores_beyond_float32_show_in_log_sum_exp(step):
    problem = Problem(1, 1, 40, 64, 260, scale=1e30)
    before = (
        *quantise_blocks(in_blocks(40, 1e20), in_blocks(260, 1, 1, 1), in_blocks(260, 1, 1, 1)),
        *problem.operands()[6:],
    )
    with np.errstate(all="ignore"):
        assert not np.isfinite(step.simulate(*before, format=E4M3).operands[LSE]).any()


HEAVY = {  # by what a query that does not see this key would find
    "one key below": (EDGES["one element hidden below"], 128, 127),
    "one key above": (EDGES["one element hidden above"], 127, 64),
}


@pytest.mark.parametrize(("problem", "key", "blind"), HEAVY.values(), ids=HEAVY)
def test_a_hidden_key_of_almost_all_weight_has_none(step, problem, key, blind):
    """Its neighbours see it, and one query does not."""
    assert not problem.allowed()[blind, key] and problem.allowed()[[blind - 1, blind + 1], key].any()
    Q, K = in_blocks(problem.queries, 1, 1) / 4 + 1, in_blocks(problem.keys, 1, 1, 1) / 4
    K[:, :, key] += 2
    V = in_blocks(problem.keys, 1, 1, 1)
    V[:, :, key] = 5
    numbers = BF16.decode(after(step, problem, Q, K, V)[O])[0, 0]
    assert (numbers[blind] < 4).all() and (numbers[[blind - 1, blind + 1]] > 4).any(0).all()


def test_keys_that_are_none_have_no_weight_beside_scores_far_below_zero(step):
    problem = EDGES["one key that is none"]
    after(step, problem, 4 + 0.1 * in_blocks(140, 1, 1), -4 + 0.1 * in_blocks(255, 1, 1))


@pytest.mark.parametrize("window", [None, 60])
@pytest.mark.sample(2)
def test_scales_are_those_of_their_blocks(step, window):
    """Also where the first block is none that a query sees."""
    problem = Problem(1, 2, 300, 64, 700, 1, True, window)
    Q, K, V = (
        X.repeat(heads, 1)
        for X, heads in zip(
            (
                in_blocks(300, 0.1, 3, 0.5),
                in_blocks(700, 3, 1, 0.1, 2, 0.2, 1),
                in_blocks(700, 1e3, 0.1, 10, 1e-3, 1, 1e2),
            ),
            (2, 1, 1),
        )
    )
    after(step, problem, Q, K, V)


@pytest.mark.parametrize(("name", "row"), [("Q", 30), ("Q", 270), ("K", 250)])
@pytest.mark.sample(2)
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
