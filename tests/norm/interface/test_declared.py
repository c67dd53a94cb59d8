"""Arrays of the host whose type says bfloat16, as the package ml_dtypes has it."""

import numpy as np
import pytest

from labkit import norm

ml_dtypes = pytest.importorskip("ml_dtypes")


def test_images_of_the_host_come_back_as_what_they_were():
    x = np.random.default_rng(0).standard_normal((3, 4, 5, 6)).astype(ml_dtypes.bfloat16)
    y = norm.batch_norm(x)
    assert y.dtype == x.dtype and np.allclose(y.astype(float), norm.batch_norm(x.astype(np.float32)), atol=2e-2)
    into = np.zeros_like(x)
    assert norm.batch_norm(x, y=into) is into and (into == y).all()
    mean, variance = np.zeros((2, 4), np.float32)
    norm.batch_norm(x, mean=mean, variance=variance)
    dx, _, _ = norm.batch_norm_backward(x, x, None, None, mean, variance)
    assert dx.dtype == x.dtype and np.allclose(dx.astype(float), 0, atol=2e-2)
