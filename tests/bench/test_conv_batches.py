"""The bench of convolutions by number of images: who is timed, and the baseline that lowers each image."""

import numpy as np
import pytest

from labkit import conv
from labkit.bench import _harness, _torch, conv_batches
from labkit.formats import BF16, FP32


def test_algorithms_that_apply_are_timed_in_float32(monkeypatch):
    def measure(table, problem, format):
        assert format == FP32 and table.name == "conv_batches"
        assert set(table.baselines(problem, format)) == {"torch", "torch, TF32", "im2col and cuBLAS, image by image"}
        return list(table.ours)

    monkeypatch.setattr(_harness, "measure", measure)
    wide, small = (
        conv_batches.measure(conv.Forward(2, 4, 20, 20, 6, 7, 7)),
        conv_batches.measure(conv.Forward(2, 4, 9, 8, 6, 3, 3)),
    )
    assert wide == ["direct/registers", "implicit_gemm/gathered", "implicit_gemm/split", "fft/few_taps"]
    assert small == [*wide, "winograd/f2x2", "winograd/f4x4", "winograd/f6x6"]


def test_tensor_cores_are_timed_in_16_bits(monkeypatch):
    monkeypatch.setattr(_harness, "measure", lambda table, problem, format, steps: (problem, format, steps))
    problem, format, (step,) = conv_batches.measure_16_bits((2, 8, 9, 9, 8, 3, 3))
    assert (problem.layout, format, step.slug) == ("NHWC", BF16, "persistent")


def test_the_default_of_torch_says_its_format(monkeypatch):
    switches = []
    monkeypatch.setattr(conv_batches, "torch_chosen", lambda *_, **options: switches.append(options) or (lambda s: s))
    assert conv_batches.torch_tf32(None, FP32).facts == {"dtype": "tf32"}
    assert switches == [{"allow_tf32": True}]


def test_images_are_lowered_one_by_one(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(_torch, "tensors", lambda format, *arrays: map(torch.from_numpy, arrays))
    monkeypatch.setattr(_torch, "launch_on_stream", lambda call: call)
    problem = conv.Forward(3, 4, 9, 8, 6, 3, 2, 2, 1, top=1, bottom=1)
    x, w, y, _ = operands = problem.operands()
    conv_batches.by_image(problem, FP32, *operands)()
    np.testing.assert_allclose(y, problem.oracle(x, w), rtol=1e-4, atol=1e-4)
