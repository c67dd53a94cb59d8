"""Every step of every ladder of convolutions is right, and without errors, on random problems that it takes."""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_convolutions import convolutions
from sampling import WHOLE

from labkit import conv, cuda
from labkit.ladder import ladders
from labkit.simulator import limits

pytestmark = pytest.mark.long
PROBLEMS = 300 if WHOLE else 9  # of a ladder
AS_DRAWN = [Phase.generate]  # a problem that fails is small as it is, and to look for smaller ones takes minutes
STEPS = [(ladder, step) for ladder in ladders("conv") for step in ladder]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """The long sums of some problems are more than the simulator runs by itself."""
    monkeypatch.setattr(limits, "MAX_CHUNK_WORK", 10 * limits.MAX_CHUNK_WORK)


def accepted_values(step) -> dict[str, tuple]:
    """Return the values of a problem's attributes that a step accepts."""
    return getattr(step.module, "SUPPORTED", {})


def accepts(step, problem) -> bool:
    return isinstance(problem, step.problem) and not problem.misfit(accepted_values(step))


def simulated(step, before, format):
    """Simulate a step without errors, and return its operands."""
    run = step.simulate(*before, format=format)
    assert run.errors == (), f"{step.path} {format}"
    return run.operands


def launched(step, before, format):
    """Launch a step on the GPU, and return its operands."""
    *arrays, problem = before
    on_gpu = list(map(cuda.to_device, arrays))
    step.launch(*on_gpu, problem, format=format)
    return *(X.copy_to_host() for X in on_gpu), problem


def check_steps(steps, problem, seed, run=simulated):
    """Fail if a step that accepts the problem computes something else."""
    for step in steps:
        for format in step.formats if accepts(step, problem) else ():
            before = problem.operands(format, seed)
            assert problem.is_right(before, run(step, before, format), format), f"{step.path} {format}"


@pytest.mark.parametrize("run", [simulated, pytest.param(launched, marks=pytest.mark.needs("gpu"))])
@pytest.mark.parametrize(("ladder", "step"), STEPS, ids=lambda one: getattr(one, "name", None))
@pytest.mark.sample(11)
def test_steps_are_right_on_random_problems(ladder, step, run):
    """Each step has its share of the problems; in `make test-long` others of its ladder compute each of them too."""

    @settings(max_examples=-(-PROBLEMS // len(ladder)), phases=AS_DRAWN)
    @given(problem=convolutions(step.problem, accepted_values(step)), seed=st.integers(0, 2**16))
    def check(problem, seed):
        assert accepts(step, problem)
        check_steps(ladder if WHOLE else [step], problem, seed, run)

    check()


NAIVE = conv.ladder("direct").step("naive")
PLACES = {
    "stride_h": 3,
    "stride_w": 4,
    "top": 5,
    "left": 6,
    "dilation_h": 7,
    "dilation_w": 8,
    "groups": 9,
    "flipped": 10,
}
PAIRS = ("stride_h", "stride_w"), ("top", "left"), ("dilation_h", "dilation_w")
VALUES = [(name, 0 if name in ("top", "left") else 1) for name in PLACES] + [("flipped", 0)]
WRONG = {f"{a} and {b} swapped": {a: b, b: a} for a, b in PAIRS} | {f"{a} = {value}": {a: value} for a, value in VALUES}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_step_is_found(wrong, monkeypatch):
    """By ten problems, where its kernel is given wrong arguments."""
    launches = NAIVE.module.launches

    def changed(*operands):
        (launch,) = launches(*operands)
        given = list(launch.arguments)
        for name, value in wrong.items():
            given[PLACES[name]] = launch.arguments[PLACES[value]] if value in PLACES else value
        return [replace(launch, arguments=tuple(given))]

    monkeypatch.setattr(NAIVE.module, "launches", changed)

    @settings(max_examples=10, phases=AS_DRAWN)
    @given(problem=convolutions(NAIVE.problem, accepted_values(NAIVE)), seed=st.integers(0, 2**16))
    def check(problem, seed):
        check_steps([NAIVE], problem, seed)

    with pytest.raises((AssertionError, ExceptionGroup)):
        check()
