"""Every step of the ladders of batch norm is right, and without errors, on random problems."""

from dataclasses import fields

import pytest
from hypothesis import Phase, assume, given, reject, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda
from labkit.ladder import TooLarge, ladders
from labkit.norm.images import ImageProblem

PROBLEMS = 200 if WHOLE else 4  # of a step
AS_DRAWN = [Phase.generate]
STEPS = [step for ladder in ladders("norm") for step in ladder if issubclass(step.problem, ImageProblem)]


def batches(step):
    """Random small problems that a step takes: sides of any size, and one of them not that small."""
    sizes = {name: st.integers(1, most) for name, most in {"N": 5, "C": 4, "H": 9, "W": 9}.items()}
    long = st.sampled_from([{}, {"N": 70}, {"C": 70}, {"C": 140}, {"C": 300}, {"W": 1100, "H": 1}])
    hard = st.booleans() if any(example.hard for example in step.examples) else st.just(False)
    others = {
        "relu": st.booleans(),
        "layout": st.sampled_from(step.SUPPORTED["layout"]),
        "momentum": st.none() | st.floats(0, 1),
        "batches": st.integers(0, 5),
        "eps": st.sampled_from([1e-5, 1e-3, 0.1]),
        "hard": hard,
    }

    names = {field.name for field in fields(step.problem)}
    others = {name: value for name, value in others.items() if name in names}

    @st.composite
    def drawn(draw):
        of = {name: draw(size) for name, size in sizes.items()} | draw(long)
        if hasattr(step, "ROW_BYTES"):  # planes of whole rows, for TMA
            of["H"] *= step.ROW_BYTES // 4
        if hasattr(step, "SMEM_LINES"):  # pixels of whole vectors, which fill whole lines
            of |= {"N": min(of["N"], 20), "C": 8 * min(of["C"], 40), "H": step.LINE_VECTORS}
        assume(of["N"] * of["H"] * of["W"] >= 8)  # sums of squares are as wrong as two values are near
        return step.problem(**of, **{name: draw(value) for name, value in others.items()})

    return drawn()


def simulated(step, before, format):
    run = step.simulate(*before, format=format)
    assert run.errors == ()
    return run.operands


def launched(step, before, format):
    *arrays, problem = before
    on_gpu = list(map(cuda.to_device, arrays))
    step.launch(*on_gpu, problem, format=format)
    return *(X.copy_to_host() for X in on_gpu), problem


@pytest.mark.long
@pytest.mark.sample(7)
@pytest.mark.parametrize("run", [simulated, pytest.param(launched, marks=pytest.mark.needs("gpu"))])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
def test_a_step_is_right_on_random_problems(step, run):
    @settings(max_examples=PROBLEMS, phases=AS_DRAWN, deadline=None)
    @given(problem=batches(step), seed=st.integers(0, 2**16), format=st.sampled_from(step.formats))
    def check(problem, seed, format):
        before = problem.operands(format, seed)
        try:
            after = run(step, before, format)
        except TooLarge:
            reject()
        assert problem.is_right(before, after, format)

    check()
