"""GEGLU as users call it: compared with torch, of halves of one array, in place, of nothing."""

import numpy as np
import pytest

import labkit
from labkit import cuda, elementwise
from labkit.formats import BF16

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")


def random(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("columns", [48, 13])
def test_it_is_what_torch_computes(dtype, columns):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, dtype)
    gate, up = torch.randn(2, 5, 2 * columns).to(dtype).chunk(2, -1)  # rows of both lie apart
    y = elementwise.geglu(gate, up)
    expected = torch.nn.functional.gelu(gate.float()) * up.float()
    assert y.dtype == dtype and torch.allclose(y.float(), expected, rtol=4 * torch.finfo(dtype).eps, atol=1e-5)


def test_gate_itself_takes_the_result():
    gate, up = cuda.to_device(random(3, 32)), cuda.to_device(random(3, 32) + 1)
    expected = elementwise.geglu(gate, up).copy_to_host()
    assert elementwise.geglu(gate, up, y=gate) is gate
    assert np.array_equal(gate.copy_to_host(), expected)


def test_bits_stay_bits():
    gate = BF16.encode(random(2, 16))
    assert elementwise.geglu(gate, gate, format="bfloat16").dtype == np.uint16


@pytest.mark.parametrize("shape", [(0, 8), (3, 0), (0,)])
def test_of_nothing_comes_nothing(shape):
    assert elementwise.geglu(np.zeros(shape, np.float32), np.zeros(shape, np.float32)).shape == shape


def test_a_plan_runs_for_other_arrays():
    arrays = [cuda.to_device(random(3, n)) for n in (8, 8, 8)]
    plan = labkit.plan(elementwise.geglu, *arrays[:2], y=arrays[2])
    plan()
    first = arrays[2].copy_to_host()
    plan(arrays[1], arrays[0], arrays[2])
    assert np.array_equal(first, elementwise.geglu(*arrays[:2]).copy_to_host())
    assert np.array_equal(arrays[2].copy_to_host(), elementwise.geglu(arrays[1], arrays[0]).copy_to_host())


@pytest.mark.parametrize(
    ("gate", "up", "words"),
    [
        (random(2, 8), random(2, 4), "up is 2 x 4, but 2 x 8 beside gate: change it"),
        (
            random(2, 8),
            random(2, 8).astype(np.float16),
            "gate holds float32 and up float16: give two",
        ),
        (random(2, 8).astype(float), random(2, 8), r"gate\.astype\(np\.float32\)"),
        (random(2, 8)[:, ::2], None, "elements of a row have gaps"),
    ],
)
def test_what_does_not_fit_is_told(gate, up, words):
    if up is None:
        gate = up = cuda.to_device(random(2, 8))[:, ::2]
    with pytest.raises((TypeError, ValueError), match=words):
        elementwise.geglu(gate, up)
