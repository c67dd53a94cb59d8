"""`norm.layer_norm` and `norm.rms_norm`: right for rows of any axes, by the step that suits them, or refused."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, norm
from labkit.arrays.workspace import Workspace
from labkit.calls.call import forget
from labkit.formats import BF16, FP16, FP32
from labkit.norm.interface import row_norms

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
SETTINGS = settings(max_examples=100 if WHOLE else 15, phases=[Phase.generate])
CALLS = {"layer": norm.layer_norm, "rms": norm.rms_norm}


@pytest.fixture(autouse=True)
def as_a_new_process():
    forget()
    yield
    forget()


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
@pytest.mark.parametrize("kind", CALLS)
def test_rows_are_right_on_random_problems(kind, format):
    @SETTINGS
    @given(
        sizes=st.tuples(st.integers(1, 9), st.sampled_from((2, 5, 48, 77, 256, 600))),
        seed=st.integers(0, 2**16),
        left_out=st.sets(st.sampled_from(("weight", "bias", "mean", "rstd", "y"))),
        way=st.sampled_from(("host", "device", "in place")),
    )
    def check(sizes, seed, left_out, way):
        one = norm.RowForward(*sizes, kind)
        before = dict(zip(one.ARRAYS, one.operands(format, seed)))
        for name, value in {"weight": 1, "bias": 0}.items():
            if name in left_out and before[name] is not None:
                before[name] = np.full(one.columns, value, np.float32)
        there = {name: X for name, X in before.items() if X is not None}
        taken = {name: X.copy() if way == "host" else cuda.to_device(X) for name, X in there.items()}
        if way == "in place":
            taken["y"] = taken["x"]
            left_out -= {"y"}
        given = {name: X for name, X in taken.items() if name not in left_out}
        y = CALLS[kind](**given, format=str(format))
        assert "y" in left_out or y is taken["y"]
        result = {name: X if way == "host" else X.copy_to_host() for name, X in (taken | {"y": y}).items()}
        for index, right in one.expected((*before.values(), one), format).items():
            name = one.ARRAYS[index]
            held = (format if name == "y" else FP32).decode(result[name])
            assert right.holds(held) or (name in left_out and name != "y"), name

    check()


def test_a_row_may_have_several_axes():
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    weight = np.random.default_rng(1).standard_normal((4, 5)).astype(np.float32)
    centred = x - x.mean((2, 3), keepdims=True)
    expected = centred / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5) * weight
    mean = np.zeros((2, 3), np.float32)
    assert np.allclose(norm.layer_norm(x, weight, mean=mean), expected, atol=1e-5)
    assert np.allclose(mean, x.mean((2, 3)), atol=1e-6)
    last = norm.rms_norm(cuda.to_device(x)).copy_to_host()
    assert np.allclose(last, x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5), atol=1e-5)


@pytest.mark.parametrize(
    ("columns", "name", "format"),
    [(512, "warps", FP32), (1030, "on_chip", FP32), (40_000, "overlapped", BF16), (60_000, "clusters", FP32)],
)
def test_the_step_is_the_one_for_such_rows(columns, name, format):
    one = norm.RowForward(2, columns)
    given = dict(zip(one.ARRAYS, map(cuda.to_device, one.operands(format)[:-1])))
    options = row_norms.LayerNorm(format=str(format))
    (launch,) = options.launches(given, Workspace())
    assert launch.kernel.__name__ == name


def test_a_gpu_without_clusters_reads_wide_rows_again(monkeypatch):
    one = norm.RowForward(2, 60_000)
    given = dict(zip(one.ARRAYS, map(cuda.to_device, one.operands()[:-1])))
    older = SimpleNamespace(
        name="NVIDIA RTX 6000",
        compute_capability=(8, 9),
        MULTIPROCESSOR_COUNT=142,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=99 * 1024,
    )
    monkeypatch.setattr(cuda, "get_current_device", lambda: older)
    (launch,) = row_norms.LayerNorm().launches(given, Workspace())
    assert launch.kernel.__name__ == "three_reads"


def test_a_plan_runs_for_other_rows():
    one = norm.RowForward(5, 48)
    first, second = one.operands(seed=0), one.operands(seed=1)
    arrays, others = (list(map(cuda.to_device, of[:-1])) for of in (first, second))
    plan = norm.plan(norm.layer_norm, **dict(zip(one.ARRAYS, arrays)))
    for run, before, of in ((plan, first, arrays), (lambda: plan(*others), second, others)):
        run()
        assert one.is_right(before, (*(X.copy_to_host() for X in of), one))


X, C = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32), np.ones(5, np.float32)

REFUSED = {
    "nothing": (lambda: norm.layer_norm(None), "x is None: give an array"),
    "a number": (lambda: norm.rms_norm(np.array(1, np.float32)), "x is a number: give an array of rows"),
    "no columns": (lambda: norm.layer_norm(X[..., :0]), "columns is 0, but it must be at least 1"),
    "float64": (lambda: norm.layer_norm(X.astype(float)), "x holds float64: give float32 or bfloat16 or float16"),
    "weights of another shape": (
        lambda: norm.layer_norm(X, C[:4]),
        "weight is 4, but 5 beside x of 3 x 4 x 5: change it",
    ),
    "biases of another shape": (lambda: norm.layer_norm(X, C, C[:1]), "bias is 1, but 5 beside x of 3 x 4 x 5"),
    "weights of another type": (
        lambda: norm.rms_norm(X, C.astype(float)),
        "weight holds float64, but beside x of float32",
    ),
    "weights of more axes than x": (
        lambda: norm.rms_norm(C, np.ones((1, 5), np.float32)),
        "weight is 1 x 5, but 5 beside",
    ),
    "means of another shape": (lambda: norm.layer_norm(X, mean=C), "mean is 5, but 3 x 4 beside x of 3 x 4 x 5"),
    "y of another shape": (lambda: norm.rms_norm(X, y=X[:2]), "y is 2 x 4 x 5, but 3 x 4 x 5 beside x"),
    "y of another type": (
        lambda: norm.rms_norm(X, y=X.astype(float)),
        "x holds float32 and y float64: make them alike",
    ),
    "eps": (lambda: norm.rms_norm(X, eps=-1.0), "eps is -1.0: give a number that is not below 0"),
    "gaps": (
        lambda: norm.rms_norm(cuda.to_device(X)[:, ::2]),
        "x is not in C order, and rows are taken as they follow",
    ),
    "statistics in one place": (lambda: same_statistics(), "mean shares memory with rstd, which is written too"),
}


def same_statistics():
    x, mean = cuda.to_device(X), cuda.to_device(X[..., 0].copy())
    return norm.layer_norm(x, y=cuda.to_device(X), mean=mean, rstd=mean)


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_rows_that_cannot_be_normalised_are_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)


def test_arrays_of_the_host_and_of_the_device_may_be_mixed():
    """A new result is of the device; those that are given are written where they are."""
    weight, expected = 2 * C, norm.layer_norm(X, 2 * C, C)
    for x, w in ((cuda.to_device(X), weight), (X, cuda.to_device(weight))):
        y, mean = norm.layer_norm(x, w, C), np.zeros((3, 4), np.float32)
        assert cuda.is_cuda_array(y) and (y.copy_to_host() == expected).all()
        into = np.zeros_like(X)
        assert norm.layer_norm(x, w, C, y=into, mean=mean) is into
        assert (into == expected).all() and np.allclose(mean, X.mean(-1), atol=1e-6)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("on", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
def test_rows_are_those_of_torch(on):
    import torch

    x, (weight, bias) = torch.randn(3, 7, 300, device=on), torch.randn(2, 300, device=on)
    ours = norm.layer_norm(x, weight, bias), norm.rms_norm(x, weight, eps=1e-6)
    theirs = (
        torch.nn.functional.layer_norm(x, (300,), weight, bias),
        torch.nn.functional.rms_norm(x, (300,), weight, eps=1e-6),
    )
    for result, expected in zip(ours, theirs, strict=True):
        assert result.device == x.device and torch.allclose(result, expected, atol=1e-5)
