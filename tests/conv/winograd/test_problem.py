"""The bound of errors is sound, and no wider than a wrong kernel is wrong."""

import numpy as np
import pytest

from labkit import ladder
from labkit.conv.problem import BackwardData, Forward
from labkit.conv.winograd.problem import BackwardData4x4, Forward2x2, Forward4x4, Forward6x6, convolve_by_transforms
from labkit.conv.winograd.transforms import as_float32, transforms

SIZES = (2, 24, 9, 7, 5, 3, 3, 1, 1, 1, 0, 2, 1)
STEPS = ladder.ladder("conv", "winograd")
KINDS = Forward2x2, Forward4x4, Forward6x6


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("out", [1, 2, 4, 6])
@pytest.mark.parametrize("kind", [Forward4x4, BackwardData4x4])
def test_by_transforms_it_is_the_same_result(kind, out, flipped):
    problem = kind(*SIZES, flipped=flipped)
    operands = problem.operands()
    ((_, expected),) = problem.expected(operands).items()
    inputs = problem._as_forward(*(X.astype(np.float64) for X in operands[:3]))
    np.testing.assert_allclose(convolve_by_transforms(*inputs, transforms(out, 3)), expected.value, atol=1e-9)


def random(rng, shape):
    return rng.standard_normal(shape)


def cancelling(rng, shape):
    """Large numbers of both signs, whose sums are small."""
    return 1e4 * (-1.0) ** np.arange(np.prod(shape)).reshape(shape) + rng.standard_normal(shape)


def of_all_sizes(rng, shape):
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)


def positive(rng, shape):
    return rng.random(shape)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
@pytest.mark.parametrize("draw", [random, cancelling, of_all_sizes, positive])
@pytest.mark.sample(5)
def test_a_step_keeps_the_bound_on_hard_data(step, draw):
    problem, rng = step.problem(*SIZES), np.random.default_rng(7)
    before = tuple(
        draw(rng, X.shape).astype(np.float32) if isinstance(X, np.ndarray) else X for X in problem.operands()
    )
    assert problem.is_right(before, step.simulate(*before).operands)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_many_channels_one_after_the_other_keep_the_bound(kind):
    problem = kind(1, 512, 6, 6, 1, 3, 3, 1, 1, 1, 1, 1, 1)
    for seed in range(3):
        operands = problem.operands(seed=seed)
        ((_, expected),) = problem.expected(operands).items()
        assert expected.holds(in_float32(*operands[:2], kind.out))


def test_larger_tiles_cost_digits_as_the_steps_say():
    errors = {}
    for kind in KINDS:
        problem = kind(1, 64, 6, 6, 1, 3, 3, 1, 1, 1, 1, 1, 1)
        drawn = [problem.operands(seed=seed) for seed in range(40)]
        found = [in_float32(*operands[:2], kind.out) - problem.oracle(*operands[:2]) for operands in drawn]
        errors[kind.out] = np.sqrt(np.mean(np.square(found)))
    assert 4 < errors[4] / errors[2] < 8
    assert 2 < errors[6] / errors[4] < 3.5


def test_it_is_far_below_the_values():
    problem = Forward4x4(1, 64, 16, 16, 4, 3, 3, 1, 1, 1, 1, 1, 1)
    ((_, expected),) = problem.expected(problem.operands()).items()
    assert np.mean(expected.bound) < 0.02 * np.mean(np.abs(expected.value))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("matrix", ["A", "G", "B"])
def test_a_wrong_coefficient_breaks_it(kind, matrix):
    problem = kind(1, 24, 14, 14, 5, 3, 3)  # whole tiles of each size
    operands, right = problem.operands(), transforms(kind.out, 3)
    inputs = problem._as_forward(*(X.astype(np.float64) for X in operands[:3]))
    for place in np.ndindex(getattr(right, matrix).shape):
        wrong = getattr(right, matrix).copy()
        wrong[place] += 1 if wrong[place] == 0 else wrong[place] / 2
        y = convolve_by_transforms(*inputs, right._replace(**{matrix: wrong}))
        assert not problem.is_right(operands, (None, None, y.astype(np.float32)))


def in_float32(x, w, out):
    """The outputs of 6 x 6 pixels for one filter, each sum in float32 from the first to the last channel."""
    A, G, B = map(as_float32, transforms(out, 3))
    padded = np.zeros((x.shape[1], 10, 10), np.float32)
    padded[:, 1:7, 1:7] = x[0]
    y = np.empty((1, 1, 8, 8), np.float32)
    for top in range(0, 6, out):
        for left in range(0, 6, out):
            M = np.zeros((len(A), len(A)), np.float32)
            for c in range(len(padded)):
                d = padded[c, top : top + len(A), left : left + len(A)]
                M += (G @ w[0, c] @ G.T) * (B.T @ d @ B)
            y[0, 0, top : top + out, left : left + out] = A.T @ M @ A
    return y[:, :, :6, :6]


@pytest.mark.parametrize(("kind", "plain"), [(Forward4x4, Forward), (BackwardData4x4, BackwardData)])
def test_it_is_the_same_problem_otherwise(kind, plain):
    ours, theirs = kind(*SIZES), plain(*SIZES)
    assert (ours.fields, ours.flops, str(ours)) == (theirs.fields, theirs.flops, str(theirs))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours.operands()[:3], theirs.operands()[:3]))


def test_a_part_is_bounded_too():
    problem = Forward4x4(16, 32, 64, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1)
    operands = problem.operands()
    part = problem.checked_part(operands)
    ((_, expected),) = problem.expected(part).items()
    assert expected.bound.shape == (6, 6, 64, 64) and isinstance(part[3], Forward4x4)
