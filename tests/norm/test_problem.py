"""The problem of a batch norm: what torch documents of it, what is refused, and what its bounds let through."""

import numpy as np
import pytest
from described import described

from labkit import norm
from labkit.formats import BF16, FP32
from labkit.norm.images import as_planes
from labkit.norm.problem import ARRAYS

SMALL = norm.BatchForward(3, 4, 5, 2)


def expected(problem, **given):
    """What each array must hold, by name; the arrays that are given take the place of random ones."""
    *arrays, _ = problem.operands()
    arrays = [given.get(name, X) for name, X in zip(ARRAYS, arrays, strict=True)]
    result = problem.expected((*arrays, problem))
    return dict(zip(ARRAYS, arrays, strict=True)), {ARRAYS[index]: one.value for index, one in result.items()}


def test_the_formula_is_that_of_the_paper():
    x = np.array([1, 2, 3, 6], np.float32).reshape(1, 1, 2, 2)
    problem = norm.BatchForward(1, 1, 2, 2, relu=False, eps=0.5)
    given = {"weight": [2], "bias": [1], "running_mean": [10], "running_variance": [20]}
    given = {name: np.array(value, np.float32) for name, value in given.items()}
    _, result = expected(problem, x=x, **given)
    assert (result["mean"], result["variance"]) == (3, 3.5)
    assert result["y"].ravel() == pytest.approx([-1, 0, 1, 4])
    assert result["running_mean"] == pytest.approx(0.9 * 10 + 0.1 * 3)
    assert result["running_variance"] == pytest.approx(0.9 * 20 + 0.1 * 14 / 3)  # unbiased


def test_relu_cuts_what_is_below_zero():
    _, plain = expected(norm.BatchForward(3, 4, 5, 2, relu=False))
    _, cut = expected(SMALL)
    assert np.array_equal(cut["y"], np.maximum(plain["y"], 0)) and (plain["y"] < 0).any()


def test_without_a_momentum_the_running_statistics_are_the_average_of_all_batches():
    running = {"running_mean": np.zeros(4, np.float32), "running_variance": np.ones(4, np.float32)}
    of_batches = []
    for batch in range(3):
        problem = norm.BatchForward(3, 4, 5, 2, momentum=None, batches=batch)
        x = problem.operands(seed=batch)[0]
        of_batches.append((x.mean((0, 2, 3)), x.var((0, 2, 3), ddof=1)))
        _, result = expected(problem, x=x, **running)
        running = {name: result[name].astype(np.float32) for name in running}
    means, variances = zip(*of_batches, strict=True)
    assert running["running_mean"] == pytest.approx(np.mean(means, 0), abs=1e-6)
    assert running["running_variance"] == pytest.approx(np.mean(variances, 0), abs=1e-6)


def test_both_layouts_hold_the_same():
    _, planes = expected(SMALL)
    x = np.ascontiguousarray(SMALL.operands()[0].transpose(0, 2, 3, 1))
    given = dict(zip(ARRAYS, SMALL.operands()[:-1], strict=True)) | {"x": x}
    _, last = expected(norm.BatchForward(3, 4, 5, 2, layout="NHWC"), **given)
    assert np.allclose(last["y"].transpose(0, 3, 1, 2), planes["y"], atol=1e-12)
    assert np.allclose(last["variance"], planes["variance"], atol=1e-12)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_hard_channels_have_the_mean_and_variance_that_are_stated(layout):
    problem = norm.BatchForward(16, 3, 24, 24, layout=layout, hard=True)
    _, result = expected(problem)
    assert result["mean"] == pytest.approx([1e4] * 3, abs=1e-2)
    assert result["variance"] == pytest.approx([1e-3] * 3, rel=0.1)
    assert problem.operands()[0].dtype == np.float32


def test_the_bounds_tell_what_is_slightly_wrong():
    for problem in (SMALL, norm.BatchForward(3, 4, 5, 2, hard=True)):
        *before, _ = operands = problem.operands()
        value = {index: one.value.astype(np.float32) for index, one in problem.expected(operands).items()}
        after = [value.get(index, X) for index, X in enumerate(before)]
        assert problem.is_right(operands, (*after, problem))
        for index in (
            set(value) - {ARRAYS.index("y")} if problem.hard else value
        ):  # y follows from a mean that is rounded
            wrong = list(after)
            wrong[index] = np.nextafter(after[index], np.inf, dtype=np.float32) * np.float32(1 + 1e-4)
            assert not problem.is_right(operands, (*wrong, problem)), ARRAYS[index]


def test_what_is_surely_rectified_is_zero():
    operands = SMALL.operands()
    expected = SMALL.expected(operands)[ARRAYS.index("y")]
    plain = norm.BatchForward(3, 4, 5, 2, relu=False)
    below = plain.expected((*operands[:-1], plain))[ARRAYS.index("y")].value
    assert expected.holds(expected.value)
    assert not expected.holds(np.where(below < 0, 1e-6 * below, below))


def test_a_part_has_the_results_of_the_whole():
    problem = norm.BatchForward(2**12, 8, 24, 24)
    small = problem.checked_part(problem.operands())
    assert small[0].shape == (2**12, 6, 24, 24) and small[-1].C == 6
    assert np.array_equal(small[0][:, -1], problem.operands()[0][:, -1])


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ((1, 7, 1, 1), "each channel has one value, which has no unbiased variance: train with more than one"),
        ((0, 1, 2, 2), "N is 0, but it must be at least 1"),
        ((2**20, 1, 2**10, 2), "each channel has 2147483648 values"),
        ((1, 1, 2, 2, True, "CNHW"), "there is no layout 'CNHW': say NCHW or NHWC"),
        ((1, 1, 2, 2, True, "NCHW", None, -1), "batches is -1, but it must be at least 0"),
        ((1, 1, 2, 2, True, "NCHW", 0.1, 0, -1.0), "eps is -1.0: give a number that is not below 0"),
    ],
)
def test_what_is_no_batch_norm_is_refused(sizes, why):
    with pytest.raises(ValueError, match=why):
        norm.BatchForward(*sizes)


def test_planes_that_32_bits_do_not_count_are_refused():
    images = described(norm.BatchForward(2**16, 2**16 - 1, 3, 5), FP32)
    assert as_planes(images[0])[0].shape == (2**32 - 2**16, 15)
    with pytest.raises(ValueError, match="make 4294967296 planes, and this step counts them below 4294967296: choose"):
        as_planes(described(norm.BatchForward(2**16, 2**16, 1, 1), FP32)[0])


def test_numbers_of_other_kinds_are_refused():
    with pytest.raises(TypeError, match="H is 2.0, but it must be a whole number"):
        norm.BatchForward(1, 1, 2.0, 2)
    with pytest.raises(TypeError, match="momentum is 'none': give a number, or None"):
        norm.BatchForward(1, 1, 2, 2, momentum="none")


def test_arrays_that_do_not_fit_are_refused_in_a_sentence():
    *arrays, _ = SMALL.operands()
    SMALL.check(*arrays)
    for index, wrong, kind, why in (
        (0, arrays[0].astype(np.float64), TypeError, "x holds float64, but this step takes float32: convert it"),
        (1, arrays[1].tolist(), TypeError, "weight is a list, not an array"),
        (3, arrays[3][:2], ValueError, "y is 2 x 4 x 5 x 2, but NCHW of this batch norm is 3 x 4 x 5 x 2"),
        (3, np.asfortranarray(arrays[3]), ValueError, "y is not in C order"),
        (5, np.zeros(3, np.float32), ValueError, "variance is 3, but C of this batch norm is 4"),
    ):
        with pytest.raises(kind, match=why):
            SMALL.check(*arrays[:index], wrong, *arrays[index + 1 :])
    with pytest.raises(ValueError, match="takes layout = NHWC, and the batch norm has layout = NCHW: choose another"):
        SMALL.check(*arrays, supported={"layout": ("NHWC",)})


def test_images_of_bfloat16_have_statistics_of_float32():
    before = SMALL.operands(BF16)
    assert [X.dtype for X in before[:-1]] == [np.uint16, *[np.float32] * 2, np.uint16, *[np.float32] * 4]
    *after, _ = before
    for index, one in SMALL.expected(before, BF16).items():
        after[index] = (BF16 if index == ARRAYS.index("y") else FP32).encode(one.value)
    assert SMALL.is_right(before, (*after, SMALL), BF16)
    for name in ("y", "mean"):
        wrong = [X.copy() for X in after]
        wrong[ARRAYS.index(name)] = after[ARRAYS.index(name)] + np.uint16(2) if name == "y" else after[4] * 1.001
        assert not SMALL.is_right(before, (*wrong, SMALL), BF16), name


def test_a_momentum_near_one_is_rounded_too():
    """What is left of 1 has fewer digits than the momentum: so much a step may be off."""
    momentum = 0.9937596681924812
    problem = norm.BatchForward(4, 3, 3, 6, momentum=momentum, hard=True)
    before = problem.operands()
    result = problem.expected(before)[ARRAYS.index("running_variance")]
    factor = np.float32(momentum)
    variance = before[0].astype(np.float64).var((0, 2, 3), ddof=1)
    assert result.holds(((np.float32(1) - factor) * before[7] + factor * variance).astype(np.float32))
    assert not result.holds(((1 - momentum) * 1.001 * before[7] + momentum * variance).astype(np.float32))
