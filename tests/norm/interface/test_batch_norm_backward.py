"""`norm.batch_norm_backward`: right gradients for images in either order, and a sentence for what cannot be."""

import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, norm
from labkit.calls.call import forget
from labkit.formats import BF16, FP32
from norm.interface.some_images import on_host, turned

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
SETTINGS = settings(max_examples=200 if WHOLE else 15, phases=[Phase.generate])
LEFT_OUT = {"weight": 1, "bias": 0}


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_gradients_are_right_on_random_problems(format):
    """Of images in either order, with weights and results there or left out, and dx beside dy or in it."""

    @SETTINGS
    @given(
        sizes=st.tuples(*(st.integers(2, most) for most in (5, 6, 7, 7))),
        layout=st.sampled_from(("NCHW", "NHWC")),
        relu=st.booleans(),
        seed=st.integers(0, 2**16),
        left_out=st.sets(st.sampled_from(("weight", "bias", "dx", "dweight", "dbias"))),
        way=st.sampled_from(("host", "device", "turned", "in place")),
    )
    def check(sizes, layout, relu, seed, left_out, way):
        left_out -= {"weight", "bias"} if relu else set()  # else rounding decides what ReLU cuts
        one = norm.BatchBackward(*sizes, relu, layout)
        before = dict(zip(one.arrays, one.operands(format, seed)))
        before |= {name: np.full(one.C, value, np.float32) for name, value in LEFT_OUT.items() if name in left_out}
        take = {"host": np.copy, "turned": lambda X: turned(X, layout) if X.ndim == 4 else cuda.to_device(X)}
        taken = {name: take.get(way, cuda.to_device)(X) for name, X in before.items()}
        if way == "in place":
            taken["dx"] = taken["dy"]
            left_out -= {"dx"}
        arrays = {name: None if name in left_out else X for name, X in taken.items()}
        result = norm.batch_norm_backward(**arrays, relu=relu, layout=layout, format=str(format))
        expected = one.expected((*before.values(), one), format)
        for name, X in zip(("dx", "dweight", "dbias"), result, strict=True):
            assert name in left_out or X is taken[name]
            assert isinstance(X, np.ndarray) == (way == "host")
            assert expected[one.arrays.index(name)].holds((format if name == "dx" else FP32).decode(on_host(X))), name
        for name in ("x", "weight", "mean", "variance"):
            assert np.array_equal(on_host(taken[name]), before[name]), name

    check()


def test_a_plan_of_gradients_runs_for_other_arrays():
    one = norm.BatchBackward(3, 5, 4, 6)
    first, second = one.operands(seed=0), one.operands(seed=1)
    arrays, others = (list(map(cuda.to_device, of[:-1])) for of in (first, second))
    given = dict(zip(one.arrays, arrays))
    plan = norm.plan(norm.batch_norm_backward, **given, relu=True)
    for run, before, of in ((plan, first, arrays), (lambda: plan(*others), second, others)):
        run()
        assert one.is_right(before, (*(X.copy_to_host() for X in of), one))
    with pytest.raises(TypeError, match="dbias is None, and a plan allocates nothing: give an array to write to"):
        norm.plan(norm.batch_norm_backward, **given | {"dbias": None})


def test_what_batch_norm_gives_is_what_its_gradients_take():
    """By differences: y's change along a direction is the gradient's share of it."""
    rng = np.random.default_rng(0)
    x, dy, direction = rng.standard_normal((3, 4, 3, 5, 5)).astype(np.float32)
    weight, bias = rng.standard_normal((2, 3)).astype(np.float32)
    mean, variance = np.zeros((2, 3), np.float32)
    norm.batch_norm(x, weight, bias, mean=mean, variance=variance)
    dx, dweight, dbias = norm.batch_norm_backward(dy, x, weight, bias, mean, variance)
    step = np.float32(2**-7)
    further, back = (norm.batch_norm(x + away * direction, weight, bias) for away in (step, -step))
    change = (further - back) / (2 * step)
    assert np.vdot(dx, direction) == pytest.approx(np.vdot(dy, change), rel=1e-2)
    assert np.allclose(dbias, dy.sum((0, 2, 3)), atol=1e-4)
    y = norm.batch_norm(x)
    assert np.allclose(dweight, (dy * y).sum((0, 2, 3)), atol=1e-3)


X, C = np.random.default_rng(0).standard_normal((3, 4, 5, 2)).astype(np.float32), np.ones(4, np.float32)


def call(**others):
    return lambda: norm.batch_norm_backward(
        **({"dy": X, "x": X, "weight": C, "bias": C, "mean": C, "variance": C} | others)
    )


def shared(first, second):
    def made():
        names = {"dy": X, "x": X, "weight": C, "bias": C, "mean": C, "variance": C, "dx": X, "dweight": C, "dbias": C}
        arrays = {name: cuda.to_device(array.copy()) for name, array in names.items()}
        return norm.batch_norm_backward(**arrays | {second: arrays[first]})

    return made


REFUSED = {
    "no gradient": (call(dy=None), "dy is None: give an array"),
    "no images": (call(x=None), "x is None: give an array"),
    "no statistics": (call(mean=None), "mean is None: give an array"),
    "no variance": (call(variance=None), "variance is None: give an array"),
    "another gradient": (call(dy=X[:2]), "dy is 2 x 4 x 5 x 2, but 3 x 4 x 5 x 2 for these images: change it"),
    "a gradient of another type": (call(dy=X.astype(float)), "x holds float32 and dy float64: make them alike"),
    "statistics of another shape": (call(mean=C[:2]), "mean is 2, but 4 for these images: change it"),
    "statistics of another type": (call(variance=C.astype(float)), "variance holds float64, but beside images of"),
    "one value a channel": (call(dy=X[:1, :, :1, :1], x=X[:1, :, :1, :1]), "each channel has one value"),
    "eps": (call(eps=-1.0), "eps is -1.0: give a number that is not below 0"),
    "ReLU": (call(relu=1), "relu is 1: say True or False"),
    "dx in x": (shared("x", "dx"), "dx shares memory with x, which is read while dx is written"),
    "dweight in mean": (shared("mean", "dweight"), "dweight shares memory with mean, which is read while dweight is"),
    "two results": (shared("dweight", "dbias"), "dweight shares memory with dbias, which is written too"),
}


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_gradient_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)


def test_arrays_of_the_host_and_of_the_device_give_gradients_of_the_device():
    given = {"dy": X[::-1].copy(), "x": X, "weight": C, "bias": C, "mean": C, "variance": C}
    expected, dweight = norm.batch_norm_backward(**given), 0 * C
    on_device = {name: cuda.to_device(given[name]) for name in ("x", "mean")}
    result = norm.batch_norm_backward(**given | on_device, dweight=dweight)
    assert result[1] is dweight and all(map(cuda.is_cuda_array, (result[0], result[2])))
    assert all((on_host(X) == other).all() for X, other in zip(result, expected, strict=True))


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_gradients_of_tensors_are_those_of_torch(name, channels_last):
    import torch

    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    x, dy = (
        torch.randn(6, 40, 7, 9, device="cuda").to(getattr(torch, name)).contiguous(memory_format=memory_format)
        for _ in range(2)
    )
    weight, bias = torch.randn(2, 40, device="cuda")
    mean, variance = torch.empty(2, 40, device="cuda")
    norm.batch_norm(x, weight, bias, mean=mean, variance=variance, relu=True)
    result = norm.batch_norm_backward(dy, x, weight, bias, mean, variance, relu=True)
    given = [X.double().requires_grad_() for X in (x, weight, bias)]
    y = torch.relu(torch.nn.functional.batch_norm(given[0], None, None, *given[1:], True))
    expected = torch.autograd.grad(y, given, dy.double())
    assert result[0].dtype == x.dtype and result[0].stride() == x.stride()
    near = {"float32": 1e-4, "bfloat16": 2e-2}[name]
    for ours, theirs in zip(result, expected, strict=True):
        assert torch.linalg.vector_norm(ours.double() - theirs) <= near * torch.linalg.vector_norm(theirs)


@pytest.fixture(autouse=True)
def as_a_new_process():
    forget()
    yield
    forget()
