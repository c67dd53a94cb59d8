"""Sums of e4m3 products, which lose what is small beside the largest, against what was measured on an H100."""

import measured_sums
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labkit
from labkit.formats import E4M3
from labkit.ladder import ladder
from labkit.ptx.warpgroups.sums_of_e4m3 import add_products

ROWS, TILE, DEPTH = 64, 128, 32


def added(sums, left, right):
    """sums + left @ right.T, of matrices."""
    sums = np.array(sums, np.float32)[None]
    add_products(sums, np.asarray(left, np.float32)[None], np.asarray(right, np.float32)[None])
    return sums[0]


@pytest.mark.parametrize(("keys", "measured"), [(4096, -0.06), (16384, -0.3)])
def test_totals_of_attention_lose_what_was_measured(keys, measured):
    """Of weights rounded to e4m3, each row's greatest about 2**8, where one accumulator adds all of them."""
    rng = np.random.default_rng(0)
    exponents = rng.standard_normal((ROWS, 128)) @ rng.standard_normal((keys, 128)).T / np.sqrt(128) * np.log2(np.e)
    origin, total, exact = np.full((ROWS, 1), -np.inf), np.zeros((ROWS, 8), np.float32), np.zeros(ROWS)
    for first in range(0, keys, TILE):
        tile = exponents[:, first : first + TILE]
        moved = np.maximum(origin, tile.max(1, keepdims=True) - 8)
        shrinks, origin = np.exp2(origin - moved), moved
        weights = np.exp2(tile - origin)
        total, exact = (total * shrinks).astype(np.float32), exact * shrinks[:, 0] + weights.sum(1)
        rounded = E4M3.decode(E4M3.encode(weights))
        for k in range(0, TILE, DEPTH):
            total = added(total, rounded[:, k : k + DEPTH], np.ones((8, DEPTH)))
    assert np.log(total[:, 0] / exact).mean() == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("kind", measured_sums.KINDS)
def test_sums_have_the_bits_that_were_measured(kind):
    *operands, sums = measured_sums.load(kind)
    trace = labkit.simulate(measured_sums.add_products, 1, measured_sums.THREADS, *operands, np.zeros_like(sums))
    assert not trace.errors
    assert np.array_equal(trace.outputs[-1].view(np.uint32), sums.view(np.uint32))


@given(st.integers(0, 2**32))
def test_each_summand_loses_less_than_the_last_bit_that_is_kept_and_towards_zero(seed):
    rng = np.random.default_rng(seed)
    left, right = (E4M3.decode(rng.integers(0, 127, (4, DEPTH))) for _ in range(2))
    held = np.float32(448.0 * 2.0 ** rng.uniform(-20, 20))
    found, right_sum = added(np.full((4, 4), held), left, right), left @ right.T + held
    of_left, of_right = (2.0 ** np.floor(np.log2(np.maximum(X, 2.0**-6))) for X in (left, right))
    largest = np.maximum((of_left[:, None] * of_right).max(-1), held)
    last, last_of_sum = (2.0 ** (np.floor(np.log2(x)) - 13) for x in (largest, found))
    lost = right_sum - found
    assert (lost >= 0).all() and (lost <= 33 * last + last_of_sum).all() and not (found % last_of_sum).any()
    minus = added(np.full((4, 4), -held), -left, right)
    assert np.array_equal(minus, -found)


def test_what_is_smaller_than_the_last_bit_that_is_kept_is_lost():
    ones, one = np.ones((1, DEPTH)), np.zeros((1, DEPTH))
    one[0, 0] = 1
    assert added([[2.0**14]], ones, ones) == 2.0**14
    assert added([[2.0**14 - 1]], ones, ones) == 2.0**14 - 2 + DEPTH
    assert added([[2.0**14 + 1]], 0 * ones, ones) == 2.0**14
    assert added([[0]], 3 * one + 2.0**-12, ones) == 3 + 2.0**-12 * DEPTH
    assert added([[0]], 3 * one + 2.0**-13, ones) == 3


@pytest.mark.parametrize("held", [np.inf, np.nan, -np.inf])
def test_what_is_no_number_stays_so(held):
    ones = np.ones((1, DEPTH))
    assert np.array_equal(added([[held]], ones, ones), [[held]], equal_nan=True)
    assert np.isnan(added([[1.0]], ones * np.nan, ones))


OF_GEMM = [step for step in ladder("gemm", "tensor") if E4M3 in step.formats]


@pytest.mark.parametrize("step", OF_GEMM, ids=lambda step: step.slug)
@pytest.mark.sample(4)
def test_products_of_matrices_are_right_all_the_same(step):
    for problem in step.examples:
        before = problem.operands(E4M3, seed=1)
        assert problem.is_right(before, step.simulate(*before, format=E4M3).operands, E4M3)
