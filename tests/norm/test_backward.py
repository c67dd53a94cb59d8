"""The problem of batch norm's gradients: the formula against slopes, what its bounds let through, and what not."""

import numpy as np
import pytest

from labkit import norm
from labkit.formats import BF16, FP32
from labkit.norm.backward import ARRAYS

SMALL = norm.BatchBackward(3, 4, 5, 2)
LARGER = norm.BatchBackward(4, 3, 20, 20, layout="NHWC")
HARD = norm.BatchBackward(3, 4, 5, 2, hard=True)


def given(problem, format=FP32):
    """Operands by name, images in float64."""
    arrays = problem.arrays_by_name(problem.operands(format))
    return arrays | {name: format.decode(arrays[name]) for name in ("dy", "x")}


def results(problem, format=FP32) -> dict[str, np.ndarray]:
    """What is expected of each output, by name."""
    before = problem.operands(format)
    return {ARRAYS[index]: one.value for index, one in problem.expected(before, format).items()}


def is_right(problem, found, format=FP32) -> bool:
    """Whether the problem takes these outputs, rounded to what they are stored in."""
    before = problem.operands(format)
    after = [
        (format if name == "dx" else FP32).encode(found[name]) if name in found else X
        for name, X in problem.arrays_by_name(before).items()
    ]
    return problem.is_right(before, (*after, problem), format)


@pytest.mark.parametrize("relu", [False, True])
def test_the_formula_is_the_slope_of_the_forward_pass(relu):
    """Of the sum of y * dy, by differences in float64; the statistics move with x."""
    problem = norm.BatchBackward(2, 3, 3, 2, relu)
    of = given(problem)
    of = {name: X.astype(np.float64) for name, X in of.items()}

    def weighed(x, weight, bias):
        spread = np.sqrt(x.var((0, 2, 3)) + problem.eps)
        params = [value[:, None, None] for value in (x.mean((0, 2, 3)), spread, weight, bias)]
        y = (x - params[0]) / params[1] * params[2] + params[3]
        return (of["dy"] * (np.maximum(y, 0) if relu else y)).sum()

    result, inputs, step = results(problem), [of["x"], of["weight"], of["bias"]], 1e-6
    for place, name in enumerate(("dx", "dweight", "dbias")):
        slopes = np.empty(inputs[place].shape)
        for index in np.ndindex(slopes.shape):
            ends = []
            for sign in (1, -1):
                moved = [X.copy() for X in inputs]
                moved[place][index] += sign * step
                ends.append(weighed(*moved))
            slopes[index] = (ends[0] - ends[1]) / (2 * step)
        assert result[name] == pytest.approx(slopes, abs=1e-4), name


def test_both_layouts_hold_the_same():
    arrays = SMALL.arrays_by_name(SMALL.operands())
    turned = {name: np.ascontiguousarray(X.transpose(0, 2, 3, 1)) if X.ndim == 4 else X for name, X in arrays.items()}
    last = norm.BatchBackward(3, 4, 5, 2, layout="NHWC")
    result = {ARRAYS[index]: one.value for index, one in last.expected((*turned.values(), last)).items()}
    assert np.allclose(result["dx"].transpose(0, 3, 1, 2), results(SMALL)["dx"], atol=1e-12)
    assert np.allclose(result["dweight"], results(SMALL)["dweight"], atol=1e-12)


def wrong(problem, what, format=FP32) -> dict[str, np.ndarray]:
    """The outputs of a kernel in which one thing is wrong."""
    of, axes, n = given(problem, format), problem._reduced_axes, problem.values
    root = np.sqrt(
        of["variance"].astype(np.float64) * (n / (n - 1) if what == "unbiased variance" else 1) + problem.eps
    )
    weight, bias, mean, root = (problem._per_channel(X) for X in (of["weight"], of["bias"], of["mean"], root))
    centred = (of["x"] - (0 if what == "no mean" else mean)) / root
    y = centred * weight + (0 if what == "mask without bias" else bias)
    g = of["dy"] if what == "no mask" else np.where(y <= 0, 0, of["dy"])
    g = np.where(y > 0, 0, of["dy"]) if what == "mask turned" else g
    dbias, dweight = g.sum(axes), ((of["dy"] if what == "dweight without mask" else g) * centred).sum(axes)
    n -= what == "divided by one less"
    share = 0 if what == "no mean of gradients" else problem._per_channel(dbias) / n
    slope = 0 if what == "no products" else problem._per_channel(dweight) / n
    dx = weight / root * (g - share - centred * slope)
    dbias = of["dy"].sum(axes) if what == "dbias without mask" else dbias
    dweight = dweight * root.ravel() if what == "dweight not divided" else dweight
    return {"dx": dx, "dweight": dweight, "dbias": dbias}


MUTANTS = [
    "no mask", "mask turned", "mask without bias", "dweight without mask", "dbias without mask", "dweight not divided",
    "no mean of gradients", "no products", "divided by one less", "unbiased variance", "no mean",
]  # fmt: skip


@pytest.mark.parametrize("problem", [SMALL, LARGER, HARD], ids=str)
def test_kernels_that_are_slightly_wrong_are_told(problem):
    assert is_right(problem, wrong(problem, "nothing"))
    for what in MUTANTS:
        assert not is_right(problem, wrong(problem, what)), what


@pytest.mark.parametrize("what", [mutant for mutant in MUTANTS if mutant != "divided by one less"])
def test_they_are_told_in_bfloat16(what):
    """Of 30 values, dividing by one less moves dx less than rounding to bfloat16 does; the sums are as before."""
    assert is_right(SMALL, wrong(SMALL, "nothing", BF16), BF16)
    assert not is_right(SMALL, wrong(SMALL, what, BF16), BF16)


def test_a_sum_that_lost_one_value_is_told():
    problem = norm.BatchBackward(64, 1, 56, 56)
    before = problem.operands()
    result = {ARRAYS[index]: one.value for index, one in problem.expected(before).items()}
    for name in ("dweight", "dbias"):
        assert not is_right(problem, result | {name: result[name] + 0.5})
    assert is_right(problem, result)


def test_a_sum_of_one_float_after_the_other_is_told():
    """The bounds ask for sums in parts: in one thread, half a million values lose too much."""
    problem = norm.BatchBackward(160, 1, 56, 56, relu=False)
    before = problem.operands()
    result = {ARRAYS[index]: one.value for index, one in problem.expected(before).items()}
    in_turn = np.cumsum(before[0].ravel(), dtype=np.float32)[-1:]
    assert not is_right(problem, result | {"dbias": in_turn})


def test_what_relu_cut_at_exactly_zero_has_no_gradient_and_a_nan_has():
    """As torch has it: the gradient is that of what is above zero, and of NaN."""
    problem = norm.BatchBackward(1, 2, 2, 2)
    dy, x = np.ones((2, 1, 2, 2, 2), np.float32)
    zeros, ones = np.zeros(2, np.float32), np.ones(2, np.float32)
    x[0, 0] = [[1, 2], [3, np.nan]]
    mean = np.array([2, 1], np.float32)
    result = problem.expected((dy, x, ones, zeros, mean, ones, x, ones, ones, problem))
    assert result[ARRAYS.index("dbias")].value.tolist() == [2, 0]


def test_gradients_have_a_sentence_for_what_does_not_fit():
    *arrays, _ = SMALL.operands()
    SMALL.check(*arrays)
    with pytest.raises(ValueError, match="dx is 2 x 4 x 5 x 2, but NCHW of this batch norm is 3 x 4 x 5 x 2"):
        SMALL.check(*arrays[:6], arrays[6][:2], *arrays[7:])
    with pytest.raises(TypeError, match="dweight holds float64, but this step takes float32: convert it"):
        SMALL.check(*arrays[:7], arrays[7].astype(np.float64), arrays[8])
    with pytest.raises(ValueError, match="eps is -1: give a number that is not below 0"):
        norm.BatchBackward(1, 1, 2, 2, eps=-1)


def test_a_part_has_the_results_of_the_whole():
    problem = norm.BatchBackward(2**12, 8, 24, 24)
    before = problem.operands()
    small = problem.checked_part(before)
    assert small[0].shape == (2**12, 6, 24, 24) and small[-1].C == 6
    assert np.array_equal(small[1][:, -1], before[1][:, -1]) and small[2][-1] == before[2][-1]
