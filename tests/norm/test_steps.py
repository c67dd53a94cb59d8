"""Every step of batch norm forward: its passes over memory, its statistics on hard data, and what no step may lose."""

import inspect

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.formats import FP32
from labkit.ladder import TooLarge, ladders, relative_error
from labkit.norm.problem import ARRAYS
from norm.costs import check_passes

STEPS = [step for ladder in ladders("norm") for step in ladder if step.problem is norm.BatchForward]


@pytest.fixture(params=STEPS, ids=lambda step: step.path)
def step(request):
    return request.param


def problem_of(step, *sizes, **others):
    """A problem in the layout that a step takes."""
    return norm.BatchForward(*sizes, layout=step.SUPPORTED["layout"][0], **others)


@pytest.mark.sample(8)
def test_a_step_makes_as_many_passes_over_memory_as_it_says(step):
    check_passes(step, problem_of(step, 4, 12, 16, 24))


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    assert names[:9] == [*ARRAYS, "problem"] and set(names[9:]) <= {"workspace", "format"}
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


@pytest.mark.sample(8)
def test_a_step_says_whether_it_is_right_on_hard_statistics(step):
    """Those that are not make an error beyond the bound that the others keep, in the variance."""
    some = [example for example in step.examples if example.hard] or [problem_of(step, 6, 3, 20, 10, hard=True)]
    problem = some[0]
    before = problem.operands(seed=1)
    result = step.simulate(*before).operands
    is_right = any(example.hard for example in step.examples)
    assert problem.is_right(before, result) == is_right
    index = ARRAYS.index("variance")
    assert problem.expected(before)[index].holds(result[index]) == is_right


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.sample(10)
def test_what_is_no_number_stays_in_its_channel_and_is_not_rectified(step, value):
    problem = problem_of(step, 3, 16, 8, 8)
    before = problem.operands()
    channel = problem.layout.index("C")
    np.moveaxis(before[0], channel, 1)[1, 1, 2, 3] = value
    with np.errstate(invalid="ignore"):
        after = dict(zip(ARRAYS, step.simulate(*before).operands, strict=False))
        whole = problem.expected(before)
        assert problem.is_right(before, (*after.values(), problem)) or not np.isnan(value)
    assert np.isnan(np.take(after["y"], 1, channel)).all() and np.isnan(after["variance"][1])
    for name in ("y", "mean", "variance", "running_mean", "running_variance"):
        axis = channel if name == "y" else 0
        others = [np.delete(X, 1, axis) for X in (after[name], whole[ARRAYS.index(name)].value)]
        assert np.allclose(*others, rtol=1e-4, atol=1e-4), name


def test_a_step_refuses_images_of_another_layout(step):
    taken = problem_of(step, 2, 3, 4, 4).layout
    problem = norm.BatchForward(2, 3, 4, 4, layout={"NCHW": "NHWC", "NHWC": "NCHW"}[taken])
    with pytest.raises(ValueError, match=f"takes layout = {taken}"):
        step.launch(*problem.operands())


def launch(step, on_gpu):
    try:
        step.launch(*on_gpu)
    except TooLarge as error:
        pytest.skip(str(error))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(
    ("step", "problem"),
    [
        pytest.param(step, problem, id=f"{step.path}-{number}")
        for step in STEPS
        for number, problem in enumerate(
            [*step.examples[:5], problem_of(step, 8, 64, 28, 28), problem_of(step, 2, 3, 97, 101)]
        )
    ],
)
def test_a_step_gives_the_same_bits_in_100_runs_on_the_gpu(step, problem):
    before = problem.operands(seed=4)
    first = None
    for _ in range(100):
        *arrays, _ = on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
        launch(step, on_gpu)
        after = [X.copy_to_host() for X in arrays]
        first = first or after
        assert all(map(np.array_equal, after, first))
    assert problem.is_right(before, (*first, problem))


@pytest.mark.needs("gpu")
@pytest.mark.long
def test_more_elements_than_32_bits_count(step):
    problem = problem_of(step, 96, 87_392, 16, 16)
    before = problem.operands()
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    launch(step, on_gpu)
    after = [X.copy_to_host() if X is not problem else X for X in on_gpu]
    expected = problem.expected(problem.checked_part(before))
    assert relative_error(problem, expected, after, FP32) < 1e-5
