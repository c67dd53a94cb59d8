"""Batch norm in inference: the problem, its steps, and their passes over memory."""

import inspect
import re

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.formats import FP32
from labkit.ladder import relative_error
from labkit.norm.inference import ARRAYS

STEPS = [*norm.ladder("batch_inference")]


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def problem_of(step, *sizes, **others):
    """A problem in the layout that a step takes."""
    return norm.BatchInference(*sizes, layout=step.SUPPORTED["layout"][0], **others)


def test_the_formula_is_that_of_the_paper():
    x = np.array([1, 2, 3, 6], np.float32).reshape(1, 1, 2, 2)
    given = {"weight": 2, "bias": 1, "running_mean": 2, "running_variance": 15.5}
    given = {name: np.array([value], np.float32) for name, value in given.items()} | {"x": x, "y": x * np.nan}
    problem = norm.BatchInference(1, 1, 2, 2, relu=False, eps=0.5)
    result = problem.expected((*(given[name] for name in ARRAYS), problem))
    assert result[ARRAYS.index("y")].value.ravel() == pytest.approx([0.5, 1, 1.5, 3])


def test_what_is_surely_rectified_is_zero():
    *arrays, problem = norm.BatchInference(3, 4, 5, 2).operands()
    plain = norm.BatchInference(3, 4, 5, 2, relu=False)
    (rectified,), (below,) = (one.expected((*arrays, one)).values() for one in (problem, plain))
    assert rectified.holds(rectified.value)
    assert not rectified.holds(np.where(below.value < 0, 1e-6 * below.value, below.value))


def test_a_channel_of_one_value_has_no_statistics_and_needs_none():
    assert norm.BatchInference(1, 1, 1, 1).values == 1
    with pytest.raises(ValueError, match="each channel has one value"):
        norm.BatchForward(1, 1, 1, 1)


def test_a_step_makes_as_many_passes_over_memory_as_it_says(step):
    problem = problem_of(step, 4, 12, 16, 24)
    (trace,) = step.simulate(*problem.operands()).traces
    passes = sum(result.bytes for result in trace.sites if result.site.array in ("x", "y")) / (
        problem.C * problem.values
    )
    stated = re.findall(r"^    (\d+) +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    assert stated == [(str(int(passes / 4)), step.slug), (str(int(passes / 4)), "passes in all")]


def test_both_steps_have_the_same_form(step):
    assert list(inspect.signature(step.module.launches).parameters) == [*ARRAYS, "problem", "format"]
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


@pytest.mark.parametrize("format", STEPS[0].formats, ids=str)
def test_a_step_is_right_where_the_mean_is_many_spreads_from_zero(step, format):
    problem = problem_of(step, 6, 3, 20, 10, hard=True)
    before = problem.operands(format, seed=1)
    run = step.simulate(*before, format=format)
    assert run.errors == () and problem.is_right(before, run.operands, format)


@pytest.mark.parametrize("pixels", [(1, 1), (1, 3), (5, 1), (7, 7), (2, 2)], ids=str)
@pytest.mark.parametrize("C", [1, 4, 5, 12])
def test_four_neighbours_of_several_channels_get_what_is_theirs(step, pixels, C):
    problem = problem_of(step, 3, C, *pixels, relu=False)
    before = problem.operands()
    run = step.simulate(*before)
    assert run.errors == () and problem.is_right(before, run.operands)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_where_it_is(step, value):
    problem = problem_of(step, 3, 3, 5, 4)
    before = problem.operands()
    before[0][1, 1, 2, 1] = value
    with np.errstate(invalid="ignore"):
        expected = problem.expected(before)[3].value
        result = step.simulate(*before).operands[3]
    assert np.allclose(result, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
    assert np.isfinite(result).sum() >= result.size - 1


def test_a_step_refuses_images_of_another_layout(step):
    taken = problem_of(step, 2, 3, 4, 4).layout
    problem = norm.BatchInference(2, 3, 4, 4, layout={"NCHW": "NHWC", "NHWC": "NCHW"}[taken])
    with pytest.raises(ValueError, match=f"takes layout = {taken}"):
        step.launch(*problem.operands())


def test_an_image_of_too_many_values_is_refused(monkeypatch):
    planes = STEPS[0]
    monkeypatch.setattr(planes.module, "VALUE_LIMIT", 60)
    planes.launches(*norm.BatchInference(9, 1, 7, 8).operands())
    with pytest.raises(ValueError, match="an image has 60 values, and this step counts them below 60: choose another"):
        planes.launches(*norm.BatchInference(1, 2, 5, 6).operands())


@pytest.mark.needs("gpu")
@pytest.mark.long
def test_more_elements_than_32_bits_count(step):
    problem = problem_of(step, 96, 87_392, 16, 16)
    before = problem.operands()
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*on_gpu)
    after = [X.copy_to_host() if X is not problem else X for X in on_gpu]
    assert relative_error(problem, problem.expected(problem.checked_part(before)), after, FP32) < 1e-5
