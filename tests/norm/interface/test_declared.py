"""Arrays whose type says bfloat16: of the host, as the package ml_dtypes has them, and of the device, as torch."""

import numpy as np
import pytest

from labkit import cuda, norm


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


class Declared:
    """An array of the device whose type says bfloat16, as torch has it on a GPU, but for its memory."""

    is_cuda, dtype = True, "torch.bfloat16"

    def __init__(self, *shape):
        self._bits, self.shape = np.zeros(shape, np.uint16), shape

    def data_ptr(self):
        return self._bits.ctypes.data

    def element_size(self):
        return self._bits.itemsize

    def stride(self):
        return tuple(n // self._bits.itemsize for n in self._bits.strides)


def test_launches_are_planned_for_what_tensors_declare():
    weight, bias, mean, variance = (cuda.to_device(np.ones(8, np.float32)) for _ in range(4))
    images, rows = [Declared(3, 8, 4, 4) for _ in range(3)], [Declared(4, 8) for _ in range(2)]
    assert norm.plan(norm.batch_norm, images[0], weight, bias, images[1], mean=mean, variance=variance)
    assert norm.plan(norm.layer_norm, rows[0], weight, bias, rows[1])
    gradients = (images[1], images[0], weight, bias, mean, variance)
    into = {"dx": images[2], "dweight": cuda.device_array(8, np.float32), "dbias": cuda.device_array(8, np.float32)}
    assert norm.plan(norm.batch_norm_backward, *gradients, **into)
