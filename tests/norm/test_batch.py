"""The ladder of batch norm in NCHW: its passes over memory, its statistics on hard data, and what no step may lose."""

import inspect
import re
from math import prod

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.formats import FP32
from labkit.ladder import relative_error
from labkit.norm.problem import ARRAYS

STEPS = norm.ladder("batch")
WHOLE = norm.BatchForward(4, 3, 16, 24)


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def stated(step) -> dict[str, str]:
    """The costs that a step states, by what they are of."""
    lines = re.findall(r"^    (\S+) +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: number for number, what in lines}


def passes(trace) -> float:
    """How often a launch reads or writes all values of the images."""
    return sum(found.bytes for found in trace.sites if found.site.array in ("x", "y")) / prod(WHOLE.shapes["x"]) / 4


def test_a_step_makes_as_many_passes_over_memory_as_it_says(step):
    traces = step.simulate(*WHOLE.operands()).traces
    costs = stated(step)
    assert {trace.kernel: float(costs[trace.kernel]) for trace in traces} == {
        trace.kernel: passes(trace) for trace in traces
    }
    assert float(costs["passes in all"]) == sum(map(passes, traces))


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    assert names[:9] == [*ARRAYS, "problem"] and set(names[9:]) <= {"workspace"}
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


def test_a_step_says_whether_it_is_right_on_hard_statistics(step):
    """Those that are not make an error beyond the bound that the others keep, in the variance."""
    problem = norm.BatchForward(6, 3, 20, 10, hard=True)
    before = problem.operands(seed=1)
    found = step.simulate(*before).operands
    is_right = any(example.hard for example in step.examples)
    assert problem.is_right(before, found) == is_right
    place = ARRAYS.index("variance")
    assert problem.expected(before)[place].holds(found[place]) == is_right


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_in_its_channel_and_is_not_rectified(step, value):
    problem = norm.BatchForward(3, 3, 5, 4)
    before = problem.operands()
    before[0][1, 1, 2, 3] = value
    with np.errstate(invalid="ignore"):
        after = dict(zip(ARRAYS, step.simulate(*before).operands, strict=False))
        whole = problem.expected(before)
    assert np.isnan(after["y"][:, 1]).all() and np.isnan(after["variance"][1])
    for name in ("y", "mean", "variance", "running_mean", "running_variance"):
        axis = 1 if name == "y" else 0
        others = [np.delete(X, 1, axis) for X in (after[name], whole[ARRAYS.index(name)].value)]
        assert np.allclose(*others, rtol=1e-4, atol=1e-4), name


def test_a_step_refuses_images_of_another_layout(step):
    problem = norm.BatchForward(2, 3, 4, 4, layout="NHWC")
    with pytest.raises(ValueError, match="takes layout = NCHW"):
        step.launch(*problem.operands())


def test_a_first_value_far_from_all_others_does_no_harm():
    """Were it taken away from all values of a thread, its square would drown the variance."""
    problem = norm.BatchForward(4, 1, 70, 100)
    before = problem.operands()
    before[0][0, 0, 0, 0] = 1e4
    for slug in ("two_passes", "split", "last_first", "one_read", "overlapped"):
        assert problem.is_right(before, STEPS.step(slug).simulate(*before).operands), slug


def test_no_two_blocks_share_what_one_can_keep():
    one_read = STEPS.step("one_read")
    taken = {
        (64, 256, 56, 56): (8, 512, 100_352),
        (32, 64, 112, 112): (8, 1024, 200_704),
        (32, 512, 7, 7): (1, 384, 6_272),
        (8, 512, 28, 28): (1, 384, 25_088),
        (2, 8, 2, 2): (8, 32, 16),
    }
    for sizes, (blocks, threads, kept_bytes) in taken.items():
        width = 4 if sizes[2] * sizes[3] % 4 == 0 else 1
        assert one_read.geometry(norm.BatchForward(*sizes), width) == (blocks, threads, kept_bytes), sizes


@pytest.mark.parametrize(("sms", "blocks"), [(2, 1), (8, 4), (16, 8)])
@pytest.mark.parametrize("pixels", [(6, 6), (5, 7)], ids=str)
def test_a_cluster_takes_several_channels(sms, blocks, pixels, monkeypatch):
    overlapped = STEPS.step("overlapped")
    monkeypatch.setattr(overlapped.module, "SMS", sms)
    monkeypatch.setattr(overlapped.module, "MOST_IN_SM", 1)
    problem = norm.BatchForward(13, 7, *pixels, relu=sms > 2)
    width = 4 if pixels == (6, 6) else 1
    assert overlapped.geometry(problem, width)[:2] == (2, blocks)
    before = problem.operands()
    found = overlapped.simulate(*before)
    assert found.errors == () and problem.is_right(before, found.operands)


def test_a_channel_that_no_cluster_can_keep_is_refused():
    problem = norm.BatchForward(1, 1, 8 * 226, 257)
    with pytest.raises(ValueError, match="has 464656 values, and a cluster keeps 462848: choose another step"):
        STEPS.step("one_read").launches(*problem.operands())


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(
    "problem", [*STEPS[0].examples, norm.BatchForward(8, 64, 28, 28), norm.BatchForward(2, 3, 97, 101)], ids=str
)
def test_a_step_gives_the_same_bits_in_100_runs_on_the_gpu(step, problem):
    before = problem.operands(seed=4)
    first = None
    for _ in range(100):
        *arrays, _ = on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
        step.launch(*on_gpu)
        after = [X.copy_to_host() for X in arrays]
        first = first or after
        assert all(map(np.array_equal, after, first))
    assert problem.is_right(before, (*first, problem))


@pytest.mark.needs("gpu")
@pytest.mark.long
def test_more_elements_than_32_bits_count(step):
    problem = norm.BatchForward(96, 87_392, 16, 16)
    before = problem.operands()
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*on_gpu)
    after = [X.copy_to_host() if X is not problem else X for X in on_gpu]
    expected = problem.expected(problem.part(before))
    assert relative_error(problem, expected, after, FP32) < 1e-5
