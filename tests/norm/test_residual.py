"""Batch norm with a residual added before ReLU: the problems, and the steps forward."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.formats import BF16, FP32
from norm.gpus import give_sms

from .costs import check_passes

FORWARD, BACKWARD = norm.ladder("residual"), norm.ladder("residual_backward")
SMALL, BACK = norm.ResidualForward(3, 4, 5, 2), norm.ResidualBackward(3, 4, 5, 2)


@pytest.fixture(params=FORWARD, ids=lambda step: step.slug)
def step(request):
    return request.param


def expected(problem, operands, format=FP32):
    return {problem.arrays[index]: one.value for index, one in problem.expected(operands, format).items()}


def test_what_is_added_stands_before_relu():
    arrays = SMALL.arrays_by_name(SMALL.operands())
    plain = norm.BatchForward(3, 4, 5, 2, relu=False)
    of_plain = expected(plain, (*(arrays[name] for name in plain.arrays), plain))
    result = expected(SMALL, (*arrays.values(), SMALL))
    assert np.allclose(result["y"], np.maximum(of_plain["y"] + arrays["residual"], 0), atol=1e-12)
    assert all(np.array_equal(result[name], of_plain[name]) for name in result if name != "y")
    assert (arrays["residual"] < 0).any() and len(np.unique(arrays["residual"])) == arrays["residual"].size


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_wrong_sums_are_told(format):
    before = SMALL.operands(format)
    arrays, result = SMALL.arrays_by_name(before), expected(SMALL, before, format)
    after = {name: (format if name == "y" else FP32).encode(value) for name, value in result.items()}
    assert SMALL.is_right(before, (*(arrays | after).values(), SMALL), format)
    plain = expected(replace(SMALL, relu=False), (*arrays.values(), replace(SMALL, relu=False)), format)["y"]
    residual = format.decode(arrays["residual"])
    for y in (plain, np.maximum(plain - residual, 0), np.maximum(plain - residual, 0) + residual):
        assert not SMALL.is_right(before, (*(arrays | after | {"y": format.encode(y)}).values(), SMALL), format)


def test_the_gradient_of_the_residual_is_that_of_y_bit_by_bit():
    for format in (FP32, BF16):
        before = BACK.operands(format)
        arrays, result = BACK.arrays_by_name(before), expected(BACK, before, format)
        assert np.array_equal(format.encode(result["dresidual"]), np.where(arrays["y"] == 0, 0, arrays["dy"]))
        after = {name: (format if name[-1] in "xl" else FP32).encode(value) for name, value in result.items()}
        assert BACK.is_right(before, (*(arrays | after).values(), BACK), format)
        for wrong in (arrays["dy"], after["dx"], np.where(arrays["y"] == 0, arrays["dy"], 0).astype(format.dtype)):
            assert not BACK.is_right(before, (*(arrays | after | {"dresidual": wrong}).values(), BACK), format)


def test_the_gradients_are_those_of_batch_norm_without_relu_of_what_relu_let_through():
    arrays = BACK.arrays_by_name(BACK.operands())
    result = expected(BACK, (*arrays.values(), BACK))
    plain = norm.BatchBackward(3, 4, 5, 2, relu=False)
    given = arrays | {"dy": result["dresidual"].astype(np.float32), "bias": np.zeros(4, np.float32)}
    of_plain = expected(plain, (*(given[name] for name in plain.arrays), plain))
    assert all(np.allclose(result[name], of_plain[name], atol=1e-12) for name in ("dx", "dweight", "dbias"))


def test_a_part_has_the_results_of_the_whole():
    for kind in (norm.ResidualForward, norm.ResidualBackward):
        problem = kind(2**12, 8, 24, 24)
        before = problem.operands()
        small = problem.checked_part(before)
        assert small[1].shape == (2**12, 6, 24, 24) and small[-1].C == 6
        assert np.array_equal(small[2][-1], before[2][-1] if before[2].ndim == 1 else before[2][-1, [0, 1, 2, 4, 5, 7]])


def test_a_step_makes_as_many_passes_over_memory_as_it_says(step):
    check_passes(step, norm.ResidualForward(4, 12, 16, 24))


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    assert names[:10] == [*norm.ResidualForward.arrays, "problem"] and set(names[10:]) <= {"workspace", "format"}
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


def test_what_is_no_number_is_not_rectified(step):
    before = SMALL.operands()
    before[1][1, 2, 3, 1] = np.nan
    after = SMALL.arrays_by_name(step.simulate(*before).operands)
    assert np.isnan(after["y"][1, 2, 3, 1]) and np.isnan(after["y"]).sum() == 1


def test_a_step_refuses_images_of_another_layout(step):
    with pytest.raises(ValueError, match="takes layout = NCHW"):
        step.launch(*norm.ResidualForward(2, 3, 4, 4, layout="NHWC").operands())


@pytest.mark.parametrize("step", [FORWARD.step("one_read"), BACKWARD.step("one_read")], ids=["forward", "backward"])
@pytest.mark.parametrize(("sms", "pixels"), [(8, (6, 6)), (16, (5, 7))], ids=str)
def test_a_cluster_takes_several_channels(step, sms, pixels, monkeypatch):
    give_sms(monkeypatch, sms)
    monkeypatch.setattr(step.module, "MAX_BLOCKS_PER_SM", 1)
    problem = step.problem(13, 7, *pixels)
    for format in step.formats:
        before = problem.operands(format)
        found = step.simulate(*before, format=format)
        assert found.errors == () and problem.is_right(before, found.operands, format)


def test_what_a_cluster_has_no_room_for_is_read_again(monkeypatch):
    step = BACKWARD.step("one_read")
    give_sms(monkeypatch, 8)
    for name, value in (("MAX_BLOCKS_PER_SM", 1), ("MAX_BYTES", 2048)):
        monkeypatch.setattr(step.module, name, value)
    problem = norm.ResidualBackward(13, 7, 6, 6)
    before = problem.operands()
    found = step.simulate(*before)
    assert found.errors == () and problem.is_right(before, found.operands)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("sizes", [(35, 2, 3, 14), (8, 64, 28, 28), (2, 3, 97, 101), (32, 512, 7, 7)], ids=str)
def test_a_step_gives_the_same_bits_in_100_runs_on_the_gpu(step, sizes):
    problem = norm.ResidualForward(*sizes)
    before = problem.operands(seed=4)
    first = None
    for _ in range(100):
        *arrays, _ = on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
        step.launch(*on_gpu)
        after = [X.copy_to_host() for X in arrays]
        first = first or after
        assert all(map(np.array_equal, after, first))
    assert problem.is_right(before, (*first, problem))
