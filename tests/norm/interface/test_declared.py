"""Arrays whose type says bfloat16: tensors of torch, and of the host those of the package ml_dtypes."""

import numpy as np
import pytest

import labkit
from labkit import norm, softmax


def test_images_of_the_host_come_back_as_what_they_were():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.random.default_rng(0).standard_normal((3, 4, 5, 6)).astype(ml_dtypes.bfloat16)
    y = norm.batch_norm(x)
    assert y.dtype == x.dtype and np.allclose(y.astype(float), norm.batch_norm(x.astype(np.float32)), atol=2e-2)
    into = np.zeros_like(x)
    assert norm.batch_norm(x, y=into) is into and (into == y).all()
    mean, variance = np.zeros((2, 4), np.float32)
    norm.batch_norm(x, mean=mean, variance=variance)
    dx, _, _ = norm.batch_norm_backward(x, x, None, None, mean, variance)
    assert dx.dtype == x.dtype and np.allclose(dx.astype(float), 0, atol=2e-2)


def arguments(dtype, device="cpu"):
    """Calls and their arguments, tensors among them, of which images and rows hold a type."""
    import torch

    torch.manual_seed(0)
    x, dy = torch.randn(2, 3, 8, 4, 5, device=device).to(dtype)
    images = x.contiguous(memory_format=torch.channels_last)
    channels, columns, rows = (torch.rand(n, device=device) + 0.5 for n in ((8,), (5,), (3, 8, 4)))
    return {
        norm.batch_norm: (images, channels, channels),
        norm.batch_norm_backward: (dy.contiguous(memory_format=torch.channels_last), images, *[channels] * 4),
        norm.layer_norm: (x, columns, columns),
        norm.layer_norm_backward: (dy, x, columns, rows, rows),
        norm.rms_norm: (x, columns),
        norm.rms_norm_backward: (dy, x, columns, rows),
        softmax.softmax: (x,),
        softmax.softmax_backward: (dy, x),
    }


CALLS = (
    norm.batch_norm,
    norm.batch_norm_backward,
    norm.layer_norm,
    norm.layer_norm_backward,
    norm.rms_norm,
    norm.rms_norm_backward,
    softmax.softmax,
    softmax.softmax_backward,
)


def of(call, *arguments):
    result = call(*arguments)
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_tensors_of_bfloat16_give_tensors_of_bfloat16_that_lie_alike(call, device):
    import torch

    given = arguments(torch.bfloat16, device)[call]
    for result, right in zip(of(call, *given), of(call, *(X.float() for X in given)), strict=True):
        is_large = right.ndim == 4
        assert result.dtype == (torch.bfloat16 if is_large else torch.float32) and result.device == given[0].device
        assert result.stride() == (given[0] if is_large else result).stride()
        near = 2e-2 * right.abs().max()
        assert torch.allclose(result.float(), right, rtol=2e-2, atol=near)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_launches_are_planned_for_what_tensors_declare(call):
    """Also where they are of the device, and kernels see their bits alone."""
    import torch

    class OfTheDevice(torch.Tensor):
        is_cuda = True

        def get_device(self):
            return 0

    given = arguments(torch.bfloat16)[call]
    outputs = {name: X.detach() for name, X in zip(call.operation().outputs, of(call, *given), strict=True)}
    given = [X.as_subclass(OfTheDevice) for X in given]
    assert labkit.plan(call, *given, **{name: X.as_subclass(OfTheDevice) for name, X in outputs.items()})
