"""`softmax.softmax` and its gradient: right for rows of any axes, by the step that suits them, or refused."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, softmax
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP32
from labkit.ladder import TooLarge
from labkit.norm.interface import operation
from labkit.simulator import host
from labkit.softmax import interface
from labkit.softmax.row_steps import step_of

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
SETTINGS = settings(max_examples=100 if WHOLE else 12, phases=[Phase.generate])
PROBLEMS = softmax.Forward, softmax.Backward
CALLS = {softmax.Forward: softmax.softmax, softmax.Backward: softmax.softmax_backward}


@pytest.fixture(autouse=True)
def as_a_new_process():
    operation.forget()
    yield
    operation.forget()


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("of", PROBLEMS)
def test_rows_are_right_on_random_problems(of, format):
    @SETTINGS
    @given(
        sizes=st.tuples(st.integers(1, 9), st.sampled_from((1, 5, 48, 77, 256, 600))),
        seed=st.integers(0, 2**16),
        way=st.sampled_from(("host", "device", "in place", "new on the device", "new on the host")),
    )
    def check(sizes, seed, way):
        problem = of(*sizes)
        *before, _ = problem.operands(format, seed)
        taken = [X.copy() if way.endswith("host") else cuda.to_device(X) for X in before]
        if way == "in place":
            taken[-1] = taken[0]
        given = taken[:-1] if way.startswith("new") else taken
        found = CALLS[of](*given, format=str(format))
        assert way.startswith("new") or found is taken[-1]
        held = found if isinstance(found, np.ndarray) else found.copy_to_host()
        assert problem.is_right((*before, problem), (*before[:-1], held, problem), format)

    check()


def test_rows_lie_along_the_last_axis():
    x = np.random.default_rng(0).standard_normal((2, 3, 40)).astype(np.float32)
    power = np.exp(x)
    y = softmax.softmax(x)
    assert np.allclose(y, power / power.sum(-1, keepdims=True), atol=1e-6)
    assert np.allclose(softmax.softmax(x[0, 0]), y[0, 0])
    assert np.allclose(softmax.softmax_backward(x, y), y * (x - (y * x).sum(-1, keepdims=True)), atol=1e-6)


@pytest.mark.parametrize("of", PROBLEMS)
@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("columns", [1, 512, 513, 8191, 8192, 8193, 16_384, 16_385, 65_536, 131_071, 131_072])
def test_a_step_takes_the_rows_that_it_is_chosen_for(of, columns, format):
    problem = of(1, columns)
    step = step_of(problem, format)
    assert step.problem is of
    assert step.launches(*problem.operands(format), format=format, workspace=Workspace(memory=host))


def test_the_widest_rows_are_read_again_or_refused():
    assert step_of(softmax.Forward(1, 131_073)).slug == "online"
    assert step_of(softmax.Backward(1, 131_073)).slug == "fused"
    why = "a row has 131073 values of bfloat16, and steps take 131072: convert it to float32"
    for of in PROBLEMS:
        with pytest.raises(TooLarge, match=why):
            step_of(of(1, 131_073), BF16)


@pytest.mark.parametrize(("of", "name"), [(softmax.Forward, "online"), (softmax.Backward, "fused")])
def test_a_gpu_without_clusters_reads_wide_rows_again(of, name, monkeypatch):
    older = SimpleNamespace(compute_capability=(8, 9), MULTIPROCESSOR_COUNT=142)
    monkeypatch.setattr(cuda, "get_current_device", lambda: older)
    asked = interface.OPERATIONS[CALLS[of]]
    for columns, format, kernel in ((60_000, FP32, name), (256, BF16, "warps"), (60_000, BF16, None)):
        arrays = map(cuda.to_device, of(2, columns).operands(format)[:-1])
        given = dict(zip(asked.arrays, arrays, strict=True))
        if kernel:
            (launch,) = asked(str(format)).launches(given, operation.of_stream())
            assert launch.kernel.__name__ == kernel
        else:
            with pytest.raises(ValueError, match="rows of 60000 values of bfloat16 take a GPU of compute capability"):
                asked(str(format)).launches(given, operation.of_stream())


@pytest.mark.parametrize("of", PROBLEMS)
def test_a_plan_runs_for_other_rows(of):
    problem = of(5, 48)
    first, second = problem.operands(seed=0), problem.operands(seed=1)
    arrays, others = (list(map(cuda.to_device, each[:-1])) for each in (first, second))
    plan = softmax.plan(CALLS[of], *arrays)
    for run, before, after in ((plan, first, arrays), (lambda: plan(*others), second, others)):
        run()
        assert problem.is_right(before, (*(X.copy_to_host() for X in after), problem))


X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)

REFUSED = {
    "nothing": (lambda: softmax.softmax(None), "x is None: give an array"),
    "a number": (lambda: softmax.softmax(np.float32(1).reshape(())), "x is a number: give an array of rows"),
    "no columns": (lambda: softmax.softmax(X[:, :0]), "columns is 0, but it must be at least 1"),
    "no rows": (lambda: softmax.softmax(X[:0]), "rows is 0, but it must be at least 1"),
    "float64": (lambda: softmax.softmax(X.astype(float)), "x holds float64: give float32 or bfloat16"),
    "another shape": (lambda: softmax.softmax(X, X[:2].copy()), "out is 2 x 4, but 3 x 4 beside x: change it"),
    "another type": (
        lambda: softmax.softmax_backward(X, X.astype(float)),
        "dy holds float32 and y float64: make them alike",
    ),
    "no y": (lambda: softmax.softmax_backward(X, None), "y is None: give an array"),
    "gaps": (lambda: softmax.softmax(cuda.to_device(X)[:, ::2]), "x is not in C order, and rows are taken as they"),
    "two places": (lambda: softmax.softmax(cuda.to_device(X), X.copy()), "out is an array of the host, and x one of"),
    "dx in y": (lambda: in_y(), "dx shares memory with y, which is read while dx is written"),
    "a plan of another call": (lambda: softmax.plan(np.exp, X), "give softmax.softmax, softmax.softmax_backward"),
    "a plan of a list": (lambda: softmax.plan([np.exp], X), "[<ufunc 'exp'>] is not planned: give softmax.softmax"),
    "a plan without a result": (lambda: softmax.plan(softmax.softmax, cuda.to_device(X)), "out is None, and a plan"),
}


def in_y():
    y = cuda.to_device(X)
    return softmax.softmax_backward(cuda.to_device(X), y, y)


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_softmax_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("on", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
def test_rows_are_those_of_torch(on):
    import torch

    x, dy = torch.randn(2, 3, 7, 300, device=on, requires_grad=True)
    expected = torch.softmax(x, -1)
    (gradient,) = torch.autograd.grad(expected, x, dy)
    take = (lambda X: X.detach().numpy()) if on == "cpu" else (lambda X: X.detach())
    y = softmax.softmax(take(x))
    assert torch.allclose(torch.as_tensor(y), expected, atol=1e-6)
    assert torch.allclose(torch.as_tensor(softmax.softmax_backward(take(dy), y)), gradient, atol=1e-6)
