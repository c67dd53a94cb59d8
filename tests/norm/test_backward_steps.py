"""Every step of batch norm's gradients: its passes over memory, and what no step may lose."""

import inspect

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.formats import FP32
from labkit.ladder import TooLarge, ladders, relative_error

from .costs import check_passes

STEPS = [step for ladder in ladders("norm") for step in ladder if issubclass(step.problem, norm.BatchBackward)]


@pytest.fixture(params=STEPS, ids=lambda step: step.path)
def step(request):
    return request.param


def problem_of(step, *sizes, **others):
    """A problem in the layout that a step takes."""
    return step.problem(*sizes, layout=step.SUPPORTED["layout"][0], **others)


def test_a_step_makes_as_many_passes_over_memory_as_it_says(step):
    check_passes(step, problem_of(step, 4, 12, 16, 24))


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    known = len(step.problem.arrays)
    assert names[: known + 1] == [*step.problem.arrays, "problem"] and set(names[known + 1 :]) <= {
        "workspace",
        "format",
    }
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


def test_what_relu_cut_has_no_gradient(step):
    """What is exactly zero before ReLU is cut, what is NaN is not, and a gradient that is NaN does not get through."""
    problem = problem_of(step, 2, 3, 4, 4)
    arrays = problem.arrays_by_name(problem.operands())
    params = {"mean": [2, 0, 0], "variance": [1] * 3, "weight": [1, 1, -1], "bias": [0] * 3}
    arrays |= {name: np.array(value, np.float32) for name, value in params.items() if name in arrays}
    dy, x = (np.moveaxis(arrays[name], problem.layout.index("C"), 1) for name in ("dy", "x"))  # of the same memory
    dy[...] = 1
    x[:, 0] = [[2] * 4, [1] * 4, [2.5] * 4, [2] * 4]  # at, below and above the mean
    x[:, 1:] = 1
    x[0, 1, 2, 3] = np.nan
    dy[:, 2] = np.nan  # which weight -1 cuts
    if "y" in arrays:  # a residual of 0
        scaled = (np.moveaxis(x, 1, -1) - arrays["mean"]) * arrays["weight"]
        np.moveaxis(arrays["y"], problem.layout.index("C"), -1)[...] = np.maximum(scaled, 0)
    result = dict(zip(problem.arrays, step.simulate(*arrays.values(), problem).operands, strict=False))
    assert result["dbias"].tolist() == [8, 32, 0]
    assert result["dweight"][0] == pytest.approx(4, rel=1e-4) and np.isnan(result["dweight"][1])
    dx = np.moveaxis(result["dx"], problem.layout.index("C"), 1)
    assert np.isnan(dx[:, 1]).all() and not np.isnan(dx[:, [0, 2]]).any() and (dx[:, 2] == 0).all()


def test_a_step_is_right_on_hard_statistics(step):
    """The mean is taken away before anything is multiplied."""
    problem = problem_of(step, 6, 3, 20, 10, hard=True)
    before = problem.operands(seed=1)
    assert problem.is_right(before, step.simulate(*before).operands)


def test_a_step_refuses_images_of_another_layout(step):
    taken = problem_of(step, 2, 3, 4, 4).layout
    problem = step.problem(2, 3, 4, 4, layout={"NCHW": "NHWC", "NHWC": "NCHW"}[taken])
    with pytest.raises(ValueError, match=f"takes layout = {taken}"):
        step.launch(*problem.operands())


def launch(step, operands):
    """Runs a step, if its blocks keep channels of these sizes."""
    try:
        step.launch(*operands)
    except TooLarge as why:
        pytest.skip(str(why))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("sizes", [(35, 2, 3, 14), (8, 64, 28, 28), (2, 3, 97, 101), (32, 512, 7, 7)], ids=str)
def test_a_step_gives_the_same_bits_in_100_runs_on_the_gpu(step, sizes):
    problem = problem_of(step, *sizes)
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
