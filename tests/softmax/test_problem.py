"""The problems of softmax: their formulas, what their bounds let through, and what is refused."""

import numpy as np
import pytest

from labkit import softmax
from labkit.formats import BF16, FP32
from labkit.softmax import problem as problem_of_softmax
from labkit.softmax.problem import CHECKED_ROWS

PROBLEMS = softmax.Forward, softmax.Backward


def expected(problem, operands, format=FP32) -> np.ndarray:
    """What the output must hold."""
    ((_, one),) = problem.expected(operands, format).items()
    return one.value


def after(operands, value, format=FP32) -> tuple:
    """The operands after a step that wrote this."""
    return *operands[:-2], format.result.encode(value), operands[-1]


def test_the_formula_is_that_of_the_paper():
    problem = softmax.Forward(2, 3)
    x = np.log([[1, 2, 5], [4, 4, 8]]).astype(np.float32) + np.float32([[0], [300]])
    assert expected(problem, (x, None, problem)) == pytest.approx(np.array([[1, 2, 5], [2, 2, 4]]) / 8, rel=1e-4)


def test_the_gradient_is_the_slope_of_the_forward_pass():
    """Of the sum of y * dy, by differences in float64."""
    forward, backward = softmax.Forward(3, 5), softmax.Backward(3, 5)
    x = forward.operands()[0].astype(np.float64)
    dy, *_ = backward.operands()
    y = expected(forward, (x, None, forward)).astype(np.float32)

    def weighed(x):
        return (dy * expected(forward, (x, None, forward))).sum()

    slopes = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * 1e-6
            ends.append(weighed(moved))
        slopes[index] = (ends[0] - ends[1]) / 2e-6
    assert expected(backward, (dy, y, None, backward)) == pytest.approx(slopes, abs=1e-4)


@pytest.mark.parametrize(
    "problem", [softmax.Forward(9, 40), softmax.Forward(9, 40, hard=True), softmax.Backward(9, 40)], ids=repr
)
@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_what_is_expected_is_right_when_rounded_and_wrong_otherwise(problem, format):
    before = problem.operands(format)
    value = expected(problem, before, format)
    assert problem.is_right(before, after(before, value, format), format)
    assert not problem.is_right(before, before, format)  # nothing was written
    wrong = value.copy()
    wrong[np.unravel_index(np.abs(value).argmax(), value.shape)] *= 1 + (2.0**-6 if format is BF16 else 2e-4)
    assert not problem.is_right(before, after(before, wrong, format), format)


def test_a_softmax_that_forgets_something_is_wrong():
    problem = softmax.Forward(6, 50)
    before = problem.operands()
    x = before[0].astype(np.float64)
    powers, sums = np.exp(x), np.exp(x).sum(1, keepdims=True)
    for what, y in {
        "not divided": powers,
        "the sum of all rows": powers / powers.sum(),
        "down the columns": powers / powers.sum(0),
        "a value is missing from the sum": powers / (sums - powers[:, -1:]),
        "powers of 2": np.exp2(x) / np.exp2(x).sum(1, keepdims=True),
        "maximum not taken from y": np.exp(x) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
        "logarithm": np.log(powers / sums),
    }.items():
        assert not problem.is_right(before, after(before, y)), what
    assert problem.is_right(before, after(before, powers / sums))


def test_a_gradient_that_forgets_something_is_wrong():
    problem = softmax.Backward(6, 50)
    before = problem.operands()
    dy, y = (X.astype(np.float64) for X in before[:2])
    total = (y * dy).sum(1, keepdims=True)
    for what, dx in {
        "no sum": y * dy,
        "the sum of dy": y * (dy - dy.sum(1, keepdims=True)),
        "a mean": y * (dy - total / 50),
        "not times y": dy - total,
        "the sum of all rows": y * (dy - total.sum()),
        "turned round": y * (total - dy),
    }.items():
        assert not problem.is_right(before, after(before, dx)), what
    assert problem.is_right(before, after(before, y * (dy - total)))


def test_hard_rows_are_huge_and_begin_with_minus_infinity():
    problem = softmax.Forward(50, 31, hard=True)
    x, *_ = problem.operands()
    assert np.isneginf(x[:, :-1:3]).all() and np.isfinite(x[:, -1]).all()
    assert np.abs(x[np.isfinite(x)]).max() > 5000
    y = expected(problem, problem.operands())
    assert np.isfinite(y).all() and (y[:, 0] == 0).all() and y.sum(1) == pytest.approx(1)
    with np.errstate(over="ignore", invalid="ignore"):
        without_the_maximum = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert not problem.is_right(problem.operands(), after(problem.operands(), without_the_maximum))


def test_a_part_has_the_results_of_the_whole(monkeypatch):
    monkeypatch.setattr(problem_of_softmax, "CHECKED_ELEMENTS", 1000)
    for of in PROBLEMS:
        problem = of(2 * CHECKED_ROWS, 20)
        before = problem.operands()
        part = problem.checked_part(before)
        assert part[0].shape == (CHECKED_ROWS, 20) and part[-1].rows == CHECKED_ROWS
        whole = expected(problem, before)
        assert np.array_equal(expected(part[-1], part)[[0, -1]], whole[[0, -1]])
        small = of(3, 4)
        assert len(small.checked_part(small.operands())[0]) == 3


@pytest.mark.parametrize(
    ("sizes", "kind", "why"),
    [
        ((0, 4), ValueError, "rows is 0, but it must be at least 1"),
        ((4, 2**31), ValueError, "columns is 2147483648, but it must be at least 1 and below 2147483648"),
        ((4, 4.0), TypeError, r"columns is 4\.0, but it must be a whole number"),
        ((True, 4), TypeError, "rows is True, but it must be a whole number"),
    ],
)
def test_what_is_no_softmax_is_refused(sizes, kind, why):
    for of in PROBLEMS:
        with pytest.raises(kind, match=why):
            of(*sizes)


def test_arrays_that_do_not_fit_are_refused_in_a_sentence():
    problem = softmax.Forward(3, 4)
    x, y, _ = problem.operands()
    problem.check(x, y)
    for arrays, kind, why in (
        ((x.astype(np.float64), y), TypeError, "x holds float64, but this step takes float32: convert it"),
        ((x, None), TypeError, "y is a NoneType, not an array"),
        ((x, y[:2]), ValueError, "y is 2 x 4, but RC of this softmax is 3 x 4"),
        ((np.asfortranarray(x), y), ValueError, "x is not in C order"),
    ):
        with pytest.raises(kind, match=why):
            problem.check(*arrays)
