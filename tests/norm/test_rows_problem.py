"""The problems of norms of rows: their formulas, what their bounds let through, and what is refused."""

import numpy as np
import pytest

from labkit import norm
from labkit.formats import BF16, FP32
from labkit.norm.rows import problem as problem_of_rows
from labkit.norm.rows.problem import CHECKED_ROWS

KINDS = "layer", "rms"


def named(problem, operands) -> dict:
    return dict(zip(problem.ARRAYS, operands, strict=False))


def expected(problem, operands, format=FP32) -> dict:
    """What each output must hold, by name."""
    return {problem.ARRAYS[index]: one.value for index, one in problem.expected(operands, format).items()}


def with_outputs(problem, operands, values: dict, format=FP32) -> tuple:
    """The operands after a step that wrote these values."""
    after = list(operands)
    for index, name in enumerate(problem.ARRAYS):
        if name in values:
            of = format.result if after[index].ndim == 2 else FP32
            after[index] = of.encode(values[name])
    return tuple(after)


def test_the_formulas_are_those_of_the_papers():
    x = np.array([[1, 2, 3, 6], [0, 0, 0, 2]], np.float32)
    weight, bias = np.array([2, 1, 1, -1], np.float32), np.array([1, 0, 0, 5], np.float32)
    layer, rms = (norm.RowForward(2, 4, kind, eps=0.5) for kind in KINDS)
    result = expected(layer, (x, weight, bias, None, None, None, layer))
    assert result["mean"] == pytest.approx([3, 0.5]) and result["rstd"] == pytest.approx([0.5, 1.25**-0.5])
    assert result["y"][0] == pytest.approx([-1, -0.5, 0, 3.5])
    result = expected(rms, (x, weight, None, None, None, None, rms))
    assert result["rstd"] == pytest.approx([13**-0.5, 1.5**-0.5]) and "mean" not in result
    assert result["y"][0] == pytest.approx(np.array([2, 2, 3, -6]) / 13**0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_slopes_of_the_forward_pass(kind):
    """Of the sum of y * dy, by differences in float64; the statistics move with x."""
    forward, backward = norm.RowForward(3, 5, kind, eps=0.1), norm.RowBackward(3, 5, kind, eps=0.1)
    of = named(backward, backward.operands())
    inputs = {name: of[name].astype(np.float64) for name in ("x", "weight")} | {"bias": np.zeros(5)}

    def weighed(x, weight, bias):
        return (of["dy"] * expected(forward, (x, weight, bias, None, None, None, forward))["y"]).sum()

    result = expected(backward, backward.operands())
    assert set(result) == ({"dx", "dweight", "dbias"} if kind == "layer" else {"dx", "dweight"})
    for name, input_name in (("dx", "x"), ("dweight", "weight"), ("dbias", "bias")):
        if name in result:
            slopes = np.empty(inputs[input_name].shape)
            for index in np.ndindex(slopes.shape):
                ends = []
                for sign in (1, -1):
                    moved = {key: X.copy() for key, X in inputs.items()}
                    moved[input_name][index] += sign * 1e-6
                    ends.append(weighed(**moved))
                slopes[index] = (ends[0] - ends[1]) / 2e-6
            assert result[name] == pytest.approx(slopes, abs=1e-4), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", [norm.RowForward, norm.RowBackward])
@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_what_is_expected_is_right_when_rounded_and_wrong_otherwise(of, kind, format):
    problem = of(9, 40, kind)
    before = problem.operands(format)
    values = expected(problem, before, format)
    assert problem.is_right(before, with_outputs(problem, before, values, format), format)
    assert not problem.is_right(before, before, format)  # nothing was written
    for name, X in values.items():
        step = 2.0**-6 if format is BF16 and X.ndim == 2 else 2e-4
        index = np.unravel_index(np.abs(X).argmax(), X.shape)
        wrong = values | {name: X.copy()}
        wrong[name][index] *= 1 + step
        assert not problem.is_right(before, with_outputs(problem, before, wrong, format), format), name


def mutants(problem, of):
    """What comes out if one thing is forgotten, by what it is."""
    x, dy, weight = (of[name].astype(np.float64) for name in ("x", "dy", "weight"))
    rstd = of["rstd"].astype(np.float64)[:, None]
    mean = of["mean"].astype(np.float64)[:, None] if problem.is_centred else 0
    n, g = (x - mean) * rstd, dy * weight
    g_mean, gx_mean = g.mean(1, keepdims=True) * problem.is_centred, (g * n).mean(1, keepdims=True)
    right = {"dx": (g - g_mean - n * gx_mean) * rstd, "dweight": (dy * n).sum(0), "dbias": dy.sum(0)}
    yield "no mean of products", right | {"dx": (g - g_mean) * rstd}
    yield "no rstd", right | {"dx": g - g_mean - n * gx_mean}
    yield "no weight", right | {"dx": (dy - g_mean - n * gx_mean) * rstd}
    yield "a row is missing", right | {"dweight": (dy * n)[1:].sum(0)}
    yield "dweight of x", right | {"dweight": (dy * x).sum(0)}
    if problem.is_centred:
        yield "no mean of g", right | {"dx": (g - n * gx_mean) * rstd}
        yield "the mean stays in x", right | {"dweight": (dy * x * rstd).sum(0)}
        yield "dbias is weighed", right | {"dbias": g.sum(0)}


@pytest.mark.parametrize("hard", [False, True], ids=["", "hard"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_forget_something_are_wrong(kind, hard):
    problem = norm.RowBackward(50, 40, kind, hard=hard)
    before = problem.operands()
    for what, values in mutants(problem, named(problem, before)):
        after = with_outputs(problem, before, {name: values[name] for name in values if name in problem.shapes})
        assert not problem.is_right(before, after), what


def test_hard_rows_have_the_mean_and_variance_that_are_stated():
    problem = norm.RowForward(3, 4000, hard=True)
    result = expected(problem, problem.operands())
    assert result["mean"] == pytest.approx([1e4] * 3, abs=1e-2)
    assert result["rstd"] ** -2 - problem.eps == pytest.approx([1e-3] * 3, rel=0.1)


def test_a_part_has_the_results_of_the_whole(monkeypatch):
    monkeypatch.setattr(problem_of_rows, "CHECKED_ELEMENTS", 1000)
    problem = norm.RowForward(2 * CHECKED_ROWS, 20)
    before = problem.operands()
    part = problem.checked_part(before)
    assert part[0].shape == (CHECKED_ROWS, 20) and part[-1].rows == CHECKED_ROWS
    assert np.array_equal(part[0][-1], before[0][-1]) and np.array_equal(part[1], before[1])
    small = norm.RowForward(3, 4)
    assert len(small.checked_part(small.operands())[0]) == 3
    backward = norm.RowBackward(2 * CHECKED_ROWS, 20)
    whole = backward.operands()
    some = backward.checked_part(whole)
    (dx,) = backward.expected(some)  # the others are sums over all rows
    assert backward.ARRAYS[dx] == "dx" and some[dx].shape == (CHECKED_ROWS, 20)
    assert np.array_equal(some[0][-1], whole[0][-1])


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ((0, 4), "rows is 0, but it must be at least 1"),
        ((4, 2**31), "columns is 2147483648, but it must be at least 1 and below 2147483648"),
        ((4, 4, "group"), "there is no norm of kind 'group': say layer or rms"),
        ((4, 4, "rms", -1.0), r"eps is -1\.0: give a number that is not below 0"),
    ],
)
def test_what_is_no_norm_is_refused(sizes, why):
    with pytest.raises(ValueError, match=why):
        norm.RowForward(*sizes)


def test_arrays_that_do_not_fit_are_refused_in_a_sentence():
    problem = norm.RowForward(3, 4)
    *arrays, _ = problem.operands()
    problem.check(*arrays)
    for index, wrong, kind, why in (
        (0, arrays[0].astype(np.float64), TypeError, "x holds float64, but this step takes float32: convert it"),
        (2, None, TypeError, "bias is a NoneType, not an array"),
        (3, arrays[3][:2], ValueError, "y is 2 x 4, but RC of this layer norm is 3 x 4"),
        (4, np.zeros(4, np.float32), ValueError, "mean is 4, but R of this layer norm is 3"),
        (0, np.asfortranarray(arrays[0]), ValueError, "x is not in C order"),
    ):
        with pytest.raises(kind, match=why):
            problem.check(*arrays[:index], wrong, *arrays[index + 1 :])
    with pytest.raises(ValueError, match="RMS norm has no bias: give None in its place"):
        norm.RowForward(3, 4, "rms").check(*arrays)
    of_gradients = norm.RowBackward(3, 4, "rms").operands()[:-1]
    with pytest.raises(ValueError, match="RMS norm has no dbias: give None in its place"):
        norm.RowBackward(3, 4, "rms").check(*of_gradients[:-1], arrays[1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_of_bfloat16_has_statistics_and_weights_of_float32(kind):
    for problem in (norm.RowForward(3, 4, kind), norm.RowBackward(3, 4, kind)):
        held = {name: X.dtype for name, X in named(problem, problem.operands(BF16)).items() if X is not None}
        assert set(held) == set(problem.shapes)
        assert all((dtype == np.uint16) == (len(problem.shapes[name]) == 2) for name, dtype in held.items())
