"""`softmax.softmax` and its gradient: right for rows of any axes, by the step that suits them, or refused."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from described import described
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, softmax
from labkit.arrays.workspace import CountingWorkspace, Workspace
from labkit.calls.call import forget
from labkit.formats import BF16, FP16, FP32
from labkit.softmax.row_steps import choose_step

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
SETTINGS = settings(max_examples=100 if WHOLE else 12, phases=[Phase.generate])
PROBLEMS = softmax.Forward, softmax.Backward
CALLS = {softmax.Forward: softmax.softmax, softmax.Backward: softmax.softmax_backward}
ARRAYS = {softmax.Forward: ("x", "out"), softmax.Backward: ("dy", "y", "dx")}


@pytest.fixture(autouse=True)
def as_a_new_process():
    forget()
    yield
    forget()


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
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
        given = dict(zip(ARRAYS[of], taken[:-1] if way.startswith("new") else taken))
        result = CALLS[of](**given, format=str(format))
        assert way.startswith("new") or result is taken[-1]
        held = result if isinstance(result, np.ndarray) else result.copy_to_host()
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
@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
@pytest.mark.parametrize("columns", [1, 512, 513, 8191, 8192, 8193, 16_384, 16_385, 65_536, 131_071, 131_072])
def test_a_step_takes_the_rows_that_it_is_chosen_for(of, columns, format):
    problem = of(1, columns)
    step, launches = choose_step(described(problem, format), problem, format, CountingWorkspace())
    assert step.problem is of and launches


@pytest.mark.parametrize(("of", "name"), [(softmax.Forward, "online"), (softmax.Backward, "fused")])
def test_the_widest_rows_are_read_again_or_refused(of, name):
    problem = of(1, 2**21)
    assert choose_step(described(problem, FP32), problem, FP32, CountingWorkspace()).step.slug == name
    with pytest.raises(
        ValueError, match="clusters: a row has 2097152 values, and a cluster keeps .*: convert them to fl"
    ):
        choose_step(described(problem, BF16), problem, BF16, CountingWorkspace())


@pytest.mark.parametrize(("of", "name"), [(softmax.Forward, "online"), (softmax.Backward, "fused")])
def test_a_gpu_without_clusters_reads_wide_rows_again(of, name, monkeypatch):
    older = SimpleNamespace(
        name="NVIDIA RTX 6000",
        compute_capability=(8, 9),
        MULTIPROCESSOR_COUNT=142,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=99 * 1024,
    )
    monkeypatch.setattr(cuda, "get_current_device", lambda: older)
    asked = CALLS[of].operation
    for columns, format, kernel in ((60_000, FP32, name), (256, BF16, "lanes"), (60_000, BF16, None)):
        arrays = map(cuda.to_device, of(2, columns).operands(format)[:-1])
        given = dict(zip(ARRAYS[of], arrays, strict=True))
        if kernel:
            (launch,) = asked(str(format)).launches(given, Workspace())
            assert launch.kernel.__name__ == kernel
        else:
            with pytest.raises(
                ValueError, match="no step takes softmax 2x60000 in bfloat16 on a GPU of compute capability"
            ):
                asked(str(format)).launches(given, Workspace())


@pytest.mark.parametrize("of", PROBLEMS)
def test_a_plan_runs_for_other_rows(of):
    problem = of(5, 48)
    first, second = problem.operands(seed=0), problem.operands(seed=1)
    arrays, others = (list(map(cuda.to_device, each[:-1])) for each in (first, second))
    plan = softmax.plan(CALLS[of], **dict(zip(ARRAYS[of], arrays)))
    for run, before, after in ((plan, first, arrays), (lambda: plan(*others), second, others)):
        run()
        assert problem.is_right(before, (*(X.copy_to_host() for X in after), problem))


X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)

REFUSED = {
    "nothing": (lambda: softmax.softmax(None), "x is None: give an array"),
    "a number": (lambda: softmax.softmax(np.array(1, np.float32)), "x is a number: give an array of rows"),
    "no columns": (lambda: softmax.softmax(X[:, :0]), "columns is 0, but it must be at least 1"),
    "float64": (lambda: softmax.softmax(X.astype(float)), "x holds float64: give float32 or bfloat16 or float16"),
    "another shape": (lambda: softmax.softmax(X, out=X[:2].copy()), "out is 2 x 4, but 3 x 4 beside x: change it"),
    "another type": (
        lambda: softmax.softmax_backward(X, X.astype(float)),
        "dy holds float32 and y float64: make them alike",
    ),
    "no y": (lambda: softmax.softmax_backward(X, None), "y is None: give an array"),
    "gaps": (lambda: softmax.softmax(cuda.to_device(X)[:, ::2]), "x is not in C order, and rows are taken as they"),
    "dx in y": (lambda: in_y(), "dx shares memory with y, which is read while dx is written"),
    "a plan of another call": (lambda: softmax.plan(np.exp, X), "give a call of an operation"),
    "a plan of a list": (lambda: softmax.plan([np.exp], X), "[<ufunc 'exp'>] is not planned: give a call"),
    "a plan without a result": (lambda: softmax.plan(softmax.softmax, cuda.to_device(X)), "out is None, and a plan"),
}


def in_y():
    y = cuda.to_device(X)
    return softmax.softmax_backward(cuda.to_device(X), y, dx=y)


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_softmax_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)


def test_arrays_of_the_host_and_of_the_device_may_be_mixed():
    y, dy, into = softmax.softmax(X), X[::-1].copy(), np.zeros_like(X)
    assert softmax.softmax(cuda.to_device(X), out=into) is into and (into == y).all()
    dx = softmax.softmax_backward(dy, cuda.to_device(y))
    assert cuda.is_cuda_array(dx) and (dx.copy_to_host() == softmax.softmax_backward(dy, y)).all()


@pytest.mark.needs("torch")
@pytest.mark.parametrize("on", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
def test_rows_are_those_of_torch(on):
    import torch

    x, dy = torch.randn(2, 3, 7, 300, device=on, requires_grad=True)
    expected = torch.softmax(x, -1)
    (gradient,) = torch.autograd.grad(expected, x, dy)
    with torch.no_grad():
        y = softmax.softmax(x)
        assert y.device == x.device and torch.allclose(y, expected, atol=1e-6)
        assert torch.allclose(softmax.softmax_backward(dy, y), gradient, atol=1e-6)
